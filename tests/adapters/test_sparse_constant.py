"""Constant with a sparse tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper

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


def test_a_sparse_tensor_of_a_type_that_no_sum_takes_is_cast() -> None:
    graph = "(float[3] x) => (float[3] y) { twice = Add (c, c)  wide = Cast <to = 1> (twice)  y = Add (x, wide) }"
    made = with_sparse(graph, TensorProto.INT16, [3, 4], [0, 2], [3], opset=14)
    x = floats(3)
    np.testing.assert_allclose(run(converted(made, 13), {"x": x})[0], x + np.array([6, 0, 8], np.float32))


def test_a_sparse_tensor_is_refused_where_constants_were_dense() -> None:
    made = with_sparse("(float[3] x) => (float[3] y) { y = Add (x, c) }", 1, [3.0], [1], [3])
    assert "its tensor is sparse" in refusal(made, 10)
