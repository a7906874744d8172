"""Dimensions of size zero: assumed away where the caller or the runtime says so, and told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, parser

import reducelower
from tests.models import model as written
from tests.models import operators, run

TEXTS = {
    "Reshape": (18, 13, "t = Identity(s) y = Reshape<allowzero = 1>(x, t)", "float[n,m] x, int64[2] s", "float[a,b] y"),
    "CumSum": (14, 10, "y = CumSum(x, axis)", "float[n,m] x", "float[n,m] y"),
    "GatherND": (12, 10, "y = GatherND(x, i)", "float[n,m,k] x, int64[j,2] i", "float[j,k] y"),
    "ScatterND": (11, 10, "y = ScatterND(x, i, u)", "float[n,m] x, int64[j,2] i, float[j] u", "float[n,m] y"),
    "TopK": (11, 10, "v, y = TopK(x, count)", "int64[n,m] x, int64[1] count", "int64[n,m] y"),
}


def model(op_type: str) -> ModelProto:
    opset, _, nodes, inputs, output = TEXTS[op_type]
    return written(f"({inputs}) => ({output}) <int64 axis = {{0}}> {{ {nodes} }}", opset)


@pytest.mark.parametrize("op_type", TEXTS)
def test_nothing_is_asked_at_run_time_where_no_dimension_is_assumed_to_be_zero(op_type: str) -> None:
    target = TEXTS[op_type][1]
    assert "If" in operators(reducelower.convert_version(model(op_type), target))
    made = reducelower.legalize(model(op_type), reducelower.Target(target, assume_nonempty=True))
    onnx.checker.check_model(made.model, full_check=True)
    assert "If" not in operators(made.model)
    assert made.plan.assumes_nonempty
    assert "assumes that no dimension is 0" in "".join(made.plan.notes)


def test_the_ifs_that_are_added_are_told_with_their_reason() -> None:
    plan = reducelower.check(model("Reshape"), 13)
    (note,) = plan.notes
    assert note.startswith("1 If in place of Reshape asks at run time whether a dimension is 0")
    assert "--assume-nonempty" in note


def test_an_assumption_that_makes_no_difference_is_not_told() -> None:
    text = '<ir_version: 8, opset_import: ["" : 18]> g (float[n,4] x) => (float[n,4] y) { y = Relu(x) }'
    plan = reducelower.check(parser.parse_model(text), target=reducelower.Target(13, assume_nonempty=True))
    assert not plan.assumes_nonempty
    assert not plan.notes


def test_a_runtime_without_if_makes_the_assumption() -> None:
    made = reducelower.legalize(model("Reshape"), reducelower.Target(13, runtime=reducelower.load_runtime("opencv@4")))
    assert operators(made.model) == ["Identity", "Reshape"]
    (note,) = (note for note in made.plan.notes if "assumes" in note)
    assert "refuses an If" in note


def test_what_one_model_assumes_says_nothing_of_the_next() -> None:
    assert "If" not in operators(reducelower.convert_version(model("Reshape"), 13, assume_nonempty=True))
    assert "If" in operators(reducelower.convert_version(model("Reshape"), 13))


def test_a_scan_over_data_of_unknown_size_gives_the_same_numbers() -> None:
    x = np.float32([[1, 2, 3], [4, 5, 6]])
    made = reducelower.convert_version(model("CumSum"), 10, assume_nonempty=True)
    np.testing.assert_array_equal(run(made, {"x": x})[0], np.cumsum(x, axis=0))


def test_verification_feeds_no_empty_inputs_then() -> None:
    source = model("Reshape")
    made = reducelower.legalize(source, reducelower.Target(13, assume_nonempty=True))
    found = reducelower.verify(source, made.model, plan=made.plan)
    assert found.equivalent
    assert "No inputs without elements were fed" in "".join(found.notes)


def test_the_command_line_takes_the_assumption(tmp_path: Path, cli: Callable[..., Any]) -> None:
    onnx.save(model("Reshape"), tmp_path / "in.onnx")
    ran = cli("convert", tmp_path / "in.onnx", "-o", tmp_path / "out.onnx", "--opset", 13, "--assume-nonempty")
    assert "assumes that no dimension is 0" in ran.out
    assert operators(onnx.load(tmp_path / "out.onnx")) == ["Identity", "Reshape"]
