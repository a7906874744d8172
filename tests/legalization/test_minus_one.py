"""A stated size of -1 is one that is not known, whatever a conversion learns of it."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, checker, parser

import reducelower
from reducelower.model.graph import all_nodes, subgraphs

from .running import run

_X = np.arange(12, dtype=np.float32).reshape(3, 4)
_SUM, _MAX = _X.sum(1, keepdims=True), _X.max(1, keepdims=True)

# UNKNOWN stands for -1. Axes around a branch are no constants to inference from opset 13 (18) on, and attributes below.
_CASES = {
    "axes around branches": (
        "g (float[3, 4] x, bool c) => (float[A, B] y) <int64[1] a = {1}> { y = If (c) "
        "<then_branch = t () => (float[UNKNOWN, B] u) { u = ReduceSum (x, a) }, "
        "else_branch = e () => (float[UNKNOWN, B] v) { w = Neg (x) v = ReduceSum (w, a) }> }",
        13,
        _SUM,
    ),
    "axes around branches, at 18": (
        "g (float[3, 4] x, bool c) => (float[A, B] y) <int64[1] a = {1}> { y = If (c) "
        "<then_branch = t () => (float[UNKNOWN, B] u) { u = ReduceMax (x, a) }, "
        "else_branch = e () => (float[UNKNOWN, B] v) { w = Neg (x) v = ReduceMax (w, a) }> }",
        18,
        _MAX,
    ),
    "inner value": (
        "g (float[3, 4] x, bool c) => (float[A, B] y) <int64[1] a = {1}> { y = If (c) "
        "<then_branch = t () => (float[B, C] u) <float[UNKNOWN, 1] s> { s = ReduceSum (x, a) u = Identity (s) }, "
        "else_branch = e () => (float[B, C] v) { v = ReduceSum (x, a) }> }",
        13,
        _SUM,
    ),
    "computed axes": (
        "g (float[3, 4] x) => (float[UNKNOWN, B] y) <int64[2] t = {0, 1}, int64[1] i = {1}> "
        "{ b = Gather (t, i) y = ReduceSum (x, b) }",
        13,
        _SUM,
    ),
}


def _model(case: str) -> ModelProto:
    body, opset, _ = _CASES[case]
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> {body}')
    graphs: list[GraphProto] = [model.graph, *(graph for node in all_nodes(model) for _, _, graph in subgraphs(node))]
    for value in (value for graph in graphs for value in (*graph.output, *graph.value_info)):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param == "UNKNOWN":
                dim.dim_value = -1
    checker.check_model(model, full_check=True)
    return model


@pytest.mark.parametrize("opset", [9, 10, 11, 12])
@pytest.mark.parametrize("case", _CASES)
def test_a_size_that_is_learned_takes_the_place_of_minus_one(case: str, opset: int) -> None:
    made = reducelower.convert_version(_model(case), opset)
    checker.check_model(made, full_check=True)
    feeds = {"x": _X} if case == "computed axes" else {"x": _X, "c": np.array(True)}
    np.testing.assert_array_equal(run(made, feeds)[0], _CASES[case][2])
    assert reducelower.convert_version(made, opset) == made


@pytest.mark.parametrize("case", _CASES)
def test_minus_one_stays_where_nothing_contradicts_it(case: str) -> None:
    model = _model(case)
    opset = model.opset_import[0].version
    assert reducelower.convert_version(model, opset) == model
