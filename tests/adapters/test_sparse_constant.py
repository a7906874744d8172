"""Constant with a sparse tensor below opset 11."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, checker, helper

import reducelower
from tests.models import converted, floats, model, refusal, run


def with_sparse(
    graph: str, kind: int, values: Sequence[Any], places: Any, sizes: Sequence[int], opset: int = 13
) -> ModelProto:
    """A model with a sparse constant c."""
    at = np.array(places)
    tensors = helper.make_tensor("v", kind, [len(values)], values), helper.make_tensor("i", 7, at.shape, at.ravel())
    made = model(graph, opset)
    sparse = helper.make_sparse_tensor(*tensors, sizes)
    made.graph.node.insert(0, helper.make_node("Constant", [], ["c"], sparse_value=sparse))
    return made


@pytest.mark.parametrize("places", [[1, 5], [[0, 1], [1, 2]]], ids=str)
def test_a_sparse_tensor_is_written_out(places: Any) -> None:
    made = with_sparse("(float[2,3] x) => (float[2,3] y) { y = Add (x, c) }", 1, [3.0, 4.0], places, [2, 3])
    data = floats(2, 3)
    expected = data + np.array([[0, 3, 0], [0, 0, 4]], np.float32)
    np.testing.assert_allclose(run(converted(made, 10), {"x": data})[0], expected)


def test_a_sparse_tensor_of_strings_has_empty_ones_between() -> None:
    made = converted(with_sparse("() => (string[3] c) { }", TensorProto.STRING, [b"a"], [1], [3]), 10)
    assert list(made.graph.node[0].attribute[0].t.string_data) == [b"", b"a", b""]


@pytest.mark.parametrize("places", [[1, 2], [[1], [2]]], ids=str)
@pytest.mark.parametrize("target", [10, 9])
def test_a_sparse_tensor_is_as_constant_as_another(places: Any, target: int) -> None:
    """Negative indices of OneHot, valid since opset 11, are counted from the front where they are known."""
    graph = "(float[2] x) => (float[3,4] y) { depth = Constant <value_int = 4> () y = OneHot (c, depth, x) }"
    result = reducelower.convert_version(with_sparse(graph, TensorProto.INT64, [-1, 1], places, [3]), target)
    checker.check_model(result, full_check=True)
    expected = np.eye(4, dtype=np.float32)[[0, 3, 1]]
    np.testing.assert_array_equal(run(result, {"x": np.array([0, 1], np.float32)})[0], expected)


def test_a_sparse_tensor_of_a_type_that_no_sum_takes_is_cast() -> None:
    graph = "(float[3] x) => (float[3] y) { twice = Add (c, c)  wide = Cast <to = 1> (twice)  y = Add (x, wide) }"
    made = with_sparse(graph, TensorProto.INT16, [3, 4], [0, 2], [3], opset=14)
    x = floats(3)
    np.testing.assert_allclose(run(converted(made, 13), {"x": x})[0], x + np.array([6, 0, 8], np.float32))


def test_places_outside_of_a_sparse_tensor_are_refused() -> None:
    assert "cannot be read" in refusal(with_sparse("() => (float[3] c) { }", 1, [1.0], [3], [3]), 10)
