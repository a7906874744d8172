"""Exact results and distances, which rules are held against, beside numbers worked out by hand."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto

from reducelower.numerics.truth import reduce_floats, reduce_integers
from tests.table import VOCABULARY
from tools.exact.ulp import distance_in_ulps

TABLE = tomllib.loads(Path(__file__).with_name("exact.toml").read_text("utf-8"))
NAMES: dict[str, Any] = {**VOCABULARY, "Decimal": Decimal, "approx": pytest.approx}
NAMES |= {each.__name__: each for each in (reduce_floats, reduce_integers)}


@pytest.mark.parametrize(("call", "gives"), TABLE["results"])
def test_a_result_is_exact(call: str, gives: str) -> None:
    assert eval(call, NAMES) == eval(gives, NAMES)


@pytest.mark.parametrize(("given", "expected", "values", "ulps"), TABLE["distances"])
def test_a_distance_is_in_ulps(given: str, expected: str, values: str, ulps: str) -> None:
    found = distance_in_ulps(eval(given, NAMES), Decimal(expected), eval(values), TensorProto.FLOAT)
    assert found == eval(ulps, NAMES)
