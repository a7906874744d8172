"""The book `spec` says what the specification's own function bodies say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import FunctionProto, TensorProto, defs

from reducelower.rulebook import load_book

from .running import run, run_function

OPERATORS = ["ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"]


def shape_of(function: FunctionProto) -> list[Any]:
    """The function with its values numbered in order of appearance."""
    numbers = {name: index for index, name in enumerate(["", *function.input])}
    nodes = []
    for node in function.node:
        inputs = [numbers[name] for name in node.input]
        for name in node.output:
            numbers[name] = len(numbers)
        attributes = sorted((a.name, a.ref_attr_name, a.i) for a in node.attribute)
        nodes.append((node.op_type, inputs, [numbers[name] for name in node.output], attributes))
    return [sorted(function.attribute), nodes, [numbers[name] for name in function.output]]


def specified(op_type: str) -> FunctionProto:
    body = defs.get_schema(op_type, 18).function_body
    assert isinstance(body, FunctionProto)
    return body


@pytest.mark.parametrize("op_type", OPERATORS)
def test_a_rule_is_the_body_in_onnx_but_for_value_names(op_type: str) -> None:
    rule = load_book("spec").find(op_type, TensorProto.FLOAT)
    assert rule is not None
    assert shape_of(rule.function) == shape_of(specified(op_type))


@pytest.mark.parametrize("op_type", OPERATORS)
@pytest.mark.parametrize("axes", [None, [1], [-1, 0], []])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("noop", [0, 1])
def test_a_rule_gives_what_the_body_in_onnx_gives(
    op_type: str, axes: list[int] | None, keepdims: int, noop: int
) -> None:
    data = np.random.default_rng(0).uniform(0.5, 2, (2, 3, 4)).astype(np.float32)
    body = FunctionProto()
    body.CopyFrom(specified(op_type))
    body.domain = "body"
    expected = run_function(body, 18, data, axes, keepdims, noop)
    np.testing.assert_array_equal(run("spec", op_type, data, axes, keepdims, noop), expected)


@pytest.mark.parametrize("kind", ["int32", "int64", "uint32", "uint64"])
def test_the_logarithm_of_a_sum_of_integers_is_truncated(kind: str) -> None:
    data = np.array([[1, 2, 4], [100, 0, 1], [1, 0, 0]], kind)
    result = run("spec", "ReduceLogSum", data, [1], 0, runtime="onnx.reference")
    assert result.tolist() == [1, 4, 0]  # log of 7, 101 and 1: 1.9, 4.6 and 0
