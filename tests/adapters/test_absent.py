"""Operators that the target does not have come out as others that compute the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import reducelower
from reducelower import ConversionError
from tests.adapters.single import converted, model_of, operators_of, yields

X = np.array([-8.0, -1.5, -0.5, -0.0, 0.0, 0.25, 0.5, 1.0, 3.0, 9.0], np.float32)
WIDE = X.astype(np.float64)
SIGMOID = 1 / (1 + np.exp(-WIDE))
ERF = np.vectorize(math.erf)

ELEMENTWISE = {
    "Gelu": (20, {}, WIDE / 2 * (1 + ERF(WIDE / math.sqrt(2)))),
    "Gelu tanh": (
        20,
        {"approximate": "tanh"},
        WIDE / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (WIDE + 0.044715 * WIDE**3))),
    ),
    "HardSwish": (14, {}, WIDE * np.clip(WIDE / 6 + 0.5, 0, 1)),
    "Mish": (18, {}, WIDE * np.tanh(np.log1p(np.exp(WIDE)))),
    "Celu": (12, {"alpha": 2.0}, np.maximum(WIDE, 0) + np.minimum(0, 2 * (np.exp(WIDE / 2) - 1))),
    "ThresholdedRelu": (10, {"alpha": 0.5}, np.where(WIDE > 0.5, WIDE, 0)),
    "Swish": (24, {"alpha": 1.0}, WIDE * SIGMOID),
    "Shrink": (
        9,
        {"lambd": 0.5, "bias": 0.25},
        np.where(WIDE < -0.5, WIDE + 0.25, np.where(WIDE > 0.5, WIDE - 0.25, 0)),
    ),
}


@pytest.mark.parametrize(
    ("name", "target"),
    [
        (name, target)
        for name, (opset, _, _) in ELEMENTWISE.items()
        for target in (23, 19, 17, 13, 11, 9)
        if target < opset
    ],
)
def test_an_activation_follows_its_formula(name: str, target: int) -> None:
    opset, attributes, expected = ELEMENTWISE[name]
    model = model_of(name.split()[0], {"x": X}, opset=opset, ir_version=10, **attributes)
    result = converted(model, target)
    assert name.split()[0] not in operators_of(result)
    np.testing.assert_allclose(yields(result, {"x": X})[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("bias", "lambd"), [(0.75, 0.5), (-0.75, 2.0), (1.0, 1.5), (0.5, -0.5)])
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8])
def test_whole_numbers_are_shrunk_before_they_are_cut(dtype: Any, bias: float, lambd: float) -> None:
    # As both runtimes do; in the schema's body the bias itself is cut to a whole number.
    data = np.arange(6).astype(dtype) if dtype == np.uint8 else np.arange(-4, 5).astype(dtype)
    outputs = {"y": (helper.np_dtype_to_tensor_dtype(data.dtype), data.shape)}
    model = model_of("Shrink", {"x": data}, opset=9, outputs=outputs, bias=bias, lambd=lambd)
    wide = data.astype(np.float64)
    expected = np.where(wide < -lambd, wide + bias, np.where(wide > lambd, wide - bias, 0)).astype(dtype)
    np.testing.assert_array_equal(yields(converted(model, 8), {"x": data})[0], expected)


@pytest.mark.parametrize("target", [13, 11, 9])
def test_cast_like_is_a_cast_to_the_type_of_the_other_input(target: int) -> None:
    inputs = {"x": X, "like": np.zeros(2, np.int64)}
    model = model_of("CastLike", inputs, opset=15, outputs={"y": (TensorProto.INT64, None)})
    result = converted(model, target)
    assert operators_of(result) == ["Cast"]
    np.testing.assert_array_equal(yields(result, inputs)[0], X.astype(np.int64))


def test_constants_of_a_body_take_the_type_of_the_data_without_a_cast() -> None:
    model = model_of(
        "Swish", {"x": WIDE}, opset=24, ir_version=10, outputs={"y": (TensorProto.DOUBLE, None)}, alpha=1.5
    )
    result = converted(model, 13)
    assert "Cast" not in operators_of(result)
    np.testing.assert_allclose(yields(result, {"x": WIDE})[0], WIDE / (1 + np.exp(-1.5 * WIDE)), rtol=1e-6)


@pytest.mark.parametrize("target", [11, 9])
@pytest.mark.parametrize("op_type", ["LessOrEqual", "GreaterOrEqual"])
def test_a_comparison_with_nan_stays_false(op_type: str, target: int) -> None:
    left, right = np.array([1.0, 2.0, np.nan, 3.0], np.float32), np.array([2.0, 2.0, 1.0, 1.0], np.float32)
    model = model_of(op_type, {"a": left, "b": right}, opset=12, outputs={"y": (TensorProto.BOOL, None)})
    expected = left <= right if op_type == "LessOrEqual" else left >= right
    np.testing.assert_array_equal(yields(converted(model, target), {"a": left, "b": right})[0], expected)


@pytest.mark.parametrize("target", [17, 13, 9])
@pytest.mark.parametrize("aligned", [0, 1])
def test_affine_grid_of_the_identity_is_the_grid_of_places(aligned: int, target: int) -> None:
    theta = np.array([[[1, 0, 0], [0, 1, 0]]], np.float32)
    inputs = {"theta": theta, "size": np.array([1, 1, 2, 3])}
    model = model_of("AffineGrid", inputs, opset=20, ir_version=10, constants=["size"], align_corners=aligned)
    across = [-1, 0, 1] if aligned else [-2 / 3, 0, 2 / 3]
    down = [-1, 1] if aligned else [-0.5, 0.5]
    expected = np.stack(np.meshgrid(across, down), axis=-1)[None]
    np.testing.assert_allclose(yields(converted(model, target), inputs)[0], expected, atol=1e-6)


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


def test_what_no_older_opset_can_express_is_refused_with_the_opset_that_has_it() -> None:
    texts = np.array(["a", "b"], object)
    outputs: dict[str, Any] = {"y": (TensorProto.STRING, [2])}
    model = model_of("StringConcat", {"x": texts, "z": texts}, opset=20, ir_version=9, outputs=outputs)
    with pytest.raises(ConversionError, match="opset 20 is the oldest that has it"):
        reducelower.convert_version(model, 19)


def test_a_withdrawn_operator_has_no_way_up_unless_another_does_the_same() -> None:
    inputs = {"x": np.zeros((1, 1, 2, 2), np.float32), "scales": np.array([1, 1, 2, 2], np.float32)}
    model = model_of("Upsample", inputs, opset=9, constants=["scales"], ir_version=7)
    assert operators_of(converted(model, 18)) == ["Resize"]


@pytest.mark.parametrize("target", [17, 14, 9])
def test_a_tensor_is_an_optional_that_is_there(target: int) -> None:
    outputs = {"y": (TensorProto.BOOL, ())}
    (there,) = yields(converted(model_of("OptionalHasElement", {"x": X}, opset=18, outputs=outputs), target), {"x": X})
    assert there.dtype == np.bool_
    assert there
    (element,) = yields(converted(model_of("OptionalGetElement", {"x": X}, opset=18), target), {"x": X})
    np.testing.assert_array_equal(element, X)
