"""What a Reshape with allowzero becomes below opset 14, where sizes have names; also where sizes are zero."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, parser

import reducelower
from tests.models import run

CASES = tomllib.loads(Path(__file__).with_name("allowzero.toml").read_text(encoding="utf-8"))

CONSTANTS = (
    "int64[1] one = {1}, int64[1] two = {2}, int64[1] four = {4}, int64[1] eight = {8}, int64[1] minus = {-1}, "
    "int64 zero = {0}, int64[1] axes = {1}"
)


def made(case: Mapping[str, Any]) -> ModelProto:
    """The model of a case."""
    nodes, data = case["nodes"], "f" if " f = " in case["nodes"] else "x"
    last = f"{nodes} y = Reshape<allowzero = 1>({data}, t)"
    if " w = " in nodes:
        last = f"{nodes} h = Reshape<allowzero = 1>({data}, t) y = Add(h, w)"
    output = case.get("output", "float[o0,o1,o2]")
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 18]> g ({case["inputs"]}) => ({output} y) <{CONSTANTS}> {{ {last} }}'
    )
    onnx.checker.check_model(model, full_check=True)
    return model


@pytest.mark.parametrize("name", CASES)
def test_what_a_reshape_becomes(name: str) -> None:
    lowered = reducelower.convert_version(made(CASES[name]), 13)
    onnx.checker.check_model(lowered, full_check=True)
    assert [node.op_type for node in lowered.graph.node] == CASES[name]["becomes"]


@pytest.mark.parametrize("name", CASES)
def test_what_ran_with_sizes_of_zero_runs_the_same(name: str) -> None:
    source = made(CASES[name])
    lowered = reducelower.convert_version(source, 13)
    for sizes in product((0, 1, 2, 3), repeat=2):
        feeds = fed(source, dict(zip("nm", sizes, strict=True)))
        try:
            (expected,) = run(source, feeds)
        except Exception:  # it has no result
            continue
        (found,) = run(lowered, feeds)
        # The page gives no meaning to a zero beside -1; onnxruntime runs it.
        if 0 not in sizes or "minus" not in CASES[name]["nodes"]:
            np.testing.assert_array_equal(found, expected)


def fed(model: ModelProto, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Inputs of these sizes; a shape is that of the data, and a weight has four elements."""
    feeds: dict[str, np.ndarray] = {}
    for value in model.graph.input:
        shape = [sizes.get(dim.dim_param, dim.dim_value or 4) for dim in value.type.tensor_type.shape.dim]
        if value.name == "s":
            feeds["s"] = np.array(feeds["x"].shape, np.int64)
        elif value.name == "c":
            feeds["c"] = np.array(True)
        else:
            feeds[value.name] = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return feeds


def test_a_stale_type_that_the_model_states_is_not_taken() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]> g (float[n,8] x) => (float[a,b] y) <float[n,9] r> {
        r = Relu(x) s = Shape(r) y = Reshape<allowzero = 1>(x, s) }"""
    lowered = reducelower.convert_version(parser.parse_model(text), 13)
    onnx.checker.check_model(lowered, full_check=True)
    x = np.ones((3, 8), np.float32)
    np.testing.assert_array_equal(run(lowered, {"x": x})[0], x)
