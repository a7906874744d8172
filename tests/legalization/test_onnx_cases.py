"""onnx's own test cases of the Reduce operators give their expected outputs once they are expanded.

That they do at other opset versions is told of all operators in `tests/backend`.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from onnx import ModelProto, checker

import reducelower
from tests.legalization.models import OPERATORS
from tests.models import yields
from tools.node_cases import Case, cases

pytestmark = pytest.mark.xdist_group("onnx's cases")


@cache
def cases_of(op_type: str) -> list[Case]:
    return [case for case in cases() if case.operator == op_type]


def expect(case: Case, model: ModelProto) -> None:
    checker.check_model(model, full_check=True)
    names = [value.name for value in case.model.graph.input]
    results = yields(model, dict(zip(names, case.inputs, strict=True)))
    for result, expected in zip(results, case.outputs, strict=True):
        assert result.shape == np.shape(expected)
        np.testing.assert_allclose(result, expected, rtol=max(case.rtol, 1e-6), atol=case.atol)


@pytest.mark.parametrize("book", ["spec", "stable"])
@pytest.mark.parametrize("op_type", OPERATORS)
def test_expansion(op_type: str, book: str) -> None:
    for case in cases_of(op_type):
        expect(case, reducelower.expand(reducelower.convert_version(case.model, 18), rules=book))
        expect(case, reducelower.convert_version(reducelower.expand(case.model, rules=book), 13))


def test_the_group_of_a_test_is_known(request: pytest.FixtureRequest) -> None:
    """Where pytest-xdist cannot name it to pytest, each worker computes all cases; see pyproject.toml of pytest 9.2."""
    if request.config.getoption("loadgroup", False) and pytest.version_tuple < (9, 2):
        assert request.node.nodeid.endswith("@onnx's cases")


def test_there_are_cases_of_every_operator() -> None:
    assert min(len(cases_of(op_type)) for op_type in OPERATORS) >= 8
