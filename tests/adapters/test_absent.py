"""Operators that the target does not have come out as others that compute the same."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from tests.adapters.single import converted, model_of, yields

X = np.array([-8.0, -1.5, -0.5, -0.0, 0.0, 0.25, 0.5, 1.0, 3.0, 9.0], np.float32)


def test_one_operator_twice_gets_different_names() -> None:
    # What is added for the second must not clash with the first.
    theta = np.array([[[1, 0, 0], [0, 1, 0]]], np.float32)
    inputs = {"theta": theta, "size": np.array([1, 1, 2, 3])}
    model = model_of("AffineGrid", inputs, opset=20, ir_version=10, outputs={"y": (TensorProto.FLOAT, [1, 2, 3, 2])})
    second = model.graph.node.add()
    second.CopyFrom(model.graph.node[0])
    second.name, second.output[0] = "second", "y2"
    model.graph.output.add().CopyFrom(model.graph.output[0])
    model.graph.output[1].name = "y2"
    first, other = yields(converted(model, 17), inputs)
    np.testing.assert_array_equal(first, other)


@pytest.mark.parametrize("target", [17, 14, 9])
def test_a_tensor_is_an_optional_that_is_there(target: int) -> None:
    outputs = {"y": (TensorProto.BOOL, ())}
    (there,) = yields(converted(model_of("OptionalHasElement", {"x": X}, opset=18, outputs=outputs), target), {"x": X})
    assert there.dtype == np.bool_
    assert there
    (element,) = yields(converted(model_of("OptionalGetElement", {"x": X}, opset=18), target), {"x": X})
    np.testing.assert_array_equal(element, X)
