"""Constant with a sparse tensor below opset 11."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, checker, helper

import reducelower
from tests.adapters.models import converted, floats, run


@pytest.mark.parametrize("indices", [np.array([1, 5], np.int64), np.array([[0, 1], [1, 2]], np.int64)])
def test_a_sparse_tensor_is_written_out(indices: np.ndarray) -> None:
    values = helper.make_tensor("v", TensorProto.FLOAT, [2], [3.0, 4.0])
    places = helper.make_tensor("i", TensorProto.INT64, indices.shape, indices.ravel())
    nodes = [
        helper.make_node("Constant", [], ["c"], sparse_value=helper.make_sparse_tensor(values, places, [2, 3])),
        helper.make_node("Add", ["x", "c"], ["y"]),
    ]
    types = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (2, 3)) for name in "xy"]
    graph = helper.make_graph(nodes, "g", types[:1], types[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    data = floats(2, 3)
    expected = data + np.array([[0, 3, 0], [0, 0, 4]], np.float32)
    np.testing.assert_allclose(run(converted(made, 10), {"x": data})[0], expected)


def test_a_sparse_tensor_of_strings_has_empty_ones_between() -> None:
    values, places = helper.make_tensor("v", TensorProto.STRING, [1], [b"a"]), helper.make_tensor("i", 7, [1], [1])
    node = helper.make_node("Constant", [], ["c"], sparse_value=helper.make_sparse_tensor(values, places, [3]))
    output = helper.make_tensor_value_info("c", TensorProto.STRING, [3])
    graph = helper.make_graph([node], "g", [], [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    converted = reducelower.convert_version(model, 10)
    checker.check_model(converted, full_check=True)
    (held,) = converted.graph.node[0].attribute
    assert list(held.t.string_data) == [b"", b"a", b""]


@pytest.mark.parametrize("indices", [np.array([1, 2], np.int64), np.array([[1], [2]], np.int64)])
@pytest.mark.parametrize("target", [10, 9])
def test_a_sparse_tensor_is_as_constant_as_another(indices: np.ndarray, target: int) -> None:
    """Negative indices of OneHot, valid since opset 11, are counted from the front where they are known."""
    values = helper.make_tensor("v", TensorProto.INT64, [2], [-1, 1])
    places = helper.make_tensor("i", TensorProto.INT64, indices.shape, indices.ravel())
    nodes = [
        helper.make_node("Constant", [], ["places"], sparse_value=helper.make_sparse_tensor(values, places, [3])),
        helper.make_node("Constant", [], ["depth"], value_int=4),
        helper.make_node("OneHot", ["places", "depth", "x"], ["y"]),
    ]
    shapes = {"x": [2], "y": [3, 4]}
    types = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    graph = helper.make_graph(nodes, "g", types[:1], types[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    result = reducelower.convert_version(made, target)
    checker.check_model(result, full_check=True)
    expected = np.eye(4, dtype=np.float32)[[0, 3, 1]]
    np.testing.assert_array_equal(run(result, {"x": np.array([0, 1], np.float32)})[0], expected)


def test_places_outside_of_a_sparse_tensor_are_refused() -> None:
    values, places = helper.make_tensor("v", TensorProto.FLOAT, [1], [1.0]), helper.make_tensor("i", 7, [1], [3])
    node = helper.make_node("Constant", [], ["c"], sparse_value=helper.make_sparse_tensor(values, places, [3]))
    graph = helper.make_graph([node], "g", [], [helper.make_tensor_value_info("c", TensorProto.FLOAT, [3])])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    with pytest.raises(reducelower.ConversionError, match="cannot be read"):
        reducelower.convert_version(made, 10)
