"""QuantizeLinear and DequantizeLinear yield the same integers and numbers in every opset."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import reducelower
from reducelower import ConversionError
from tests.adapters.single import converted, model_of, operators_of, yields

RANDOM = np.random.default_rng(11)
DATA = (RANDOM.normal(size=(3, 4, 5)) * 50).astype(np.float32)
DATA[0, 0] = [0.5, 1.5, 2.5, -0.5, -1.5]  # halves go to the even neighbour
SCALES = np.array([1, 0.5, 0.25, 0.1], np.float32)
ZEROS = np.array([0, 3, -5, 100], np.int8)
BYTES = RANDOM.integers(-128, 127, (3, 4, 5)).astype(np.int8)
COLUMN = (4, 1)


def quantized(data: np.ndarray, scale: np.ndarray, zero: np.ndarray) -> np.ndarray:
    limits = np.iinfo(zero.dtype)
    whole = np.rint(data.astype(np.float32) / scale.astype(np.float32)) + zero.astype(np.float32)
    return np.clip(whole, limits.min, limits.max).astype(zero.dtype)


@pytest.mark.parametrize("constants", [["s", "z"], []])
@pytest.mark.parametrize("target", [21, 18, 12, 11, 10, 9])
def test_quantizing_each_channel(target: int, constants: list[str]) -> None:
    inputs = {"x": DATA, "s": SCALES, "z": ZEROS}
    outputs = {"y": (TensorProto.INT8, DATA.shape)}
    model = model_of("QuantizeLinear", inputs, opset=13, constants=constants, outputs=outputs, axis=-2)
    expected = quantized(DATA, SCALES.reshape(COLUMN), ZEROS.reshape(COLUMN))
    np.testing.assert_array_equal(yields(converted(model, target), inputs)[0], expected)


@pytest.mark.parametrize("constants", [["s", "z"], []])
@pytest.mark.parametrize("target", [21, 18, 12, 11, 10, 9])
def test_dequantizing_each_channel(target: int, constants: list[str]) -> None:
    inputs = {"x": BYTES, "s": SCALES, "z": ZEROS}
    outputs = {"y": (TensorProto.FLOAT, DATA.shape)}
    model = model_of("DequantizeLinear", inputs, opset=13, constants=constants, outputs=outputs, axis=1)
    expected = (BYTES.astype(np.int32) - ZEROS.reshape(COLUMN)).astype(np.float32) * SCALES.reshape(COLUMN)
    np.testing.assert_array_equal(yields(converted(model, target), inputs)[0], expected)


@pytest.mark.parametrize("target", [12, 10])
def test_a_scale_in_a_vector_of_one_becomes_a_scalar(target: int) -> None:
    inputs = {"x": DATA, "s": np.array([0.5], np.float32), "z": np.array([3], np.uint8)}
    outputs = {"y": (TensorProto.UINT8, DATA.shape)}
    model = model_of("QuantizeLinear", inputs, opset=13, constants=["s", "z"], outputs=outputs)
    result = converted(model, target)
    assert operators_of(result) == ["QuantizeLinear"]
    np.testing.assert_array_equal(yields(result, inputs)[0], quantized(DATA, inputs["s"], inputs["z"]))


@pytest.mark.parametrize("target", [18, 13, 10, 9])
def test_half_scales_are_widened(target: int) -> None:
    inputs = {"x": DATA.astype(np.float16), "s": np.array(0.3, np.float16), "z": np.array(3, np.uint8)}
    outputs = {"y": (TensorProto.UINT8, DATA.shape)}
    model = model_of("QuantizeLinear", inputs, opset=19, constants=["s", "z"], outputs=outputs)
    np.testing.assert_array_equal(yields(converted(model, target), inputs)[0], yields(model, inputs)[0])


@pytest.mark.parametrize("target", [20, 13, 9])
def test_scales_of_blocks_are_repeated(target: int) -> None:
    scales = RANDOM.random((2, 5)).astype(np.float32)
    zeros = RANDOM.integers(-5, 5, (2, 5)).astype(np.int8)
    inputs = {"x": BYTES[0], "s": scales, "z": zeros}
    attributes: dict[str, Any] = {"block_size": 2, "axis": 0, "outputs": {"y": (TensorProto.FLOAT, (4, 5))}}
    model = model_of("DequantizeLinear", inputs, opset=21, constants=["s", "z"], ir_version=10, **attributes)
    expected = (BYTES[0].astype(np.int32) - zeros.repeat(2, axis=0)).astype(np.float32) * scales.repeat(2, axis=0)
    np.testing.assert_array_equal(yields(converted(model, target), inputs)[0], expected)


@pytest.mark.parametrize("target", [20, 13, 9])
def test_sixteen_bits_are_written_out(target: int) -> None:
    inputs = {"x": DATA, "s": np.array(0.01, np.float32), "z": np.array(3, np.int16)}
    outputs = {"y": (TensorProto.INT16, DATA.shape)}
    model = model_of("QuantizeLinear", inputs, opset=21, constants=["s", "z"], outputs=outputs, ir_version=10)
    expected = quantized(DATA, inputs["s"], inputs["z"])
    np.testing.assert_array_equal(yields(converted(model, target), inputs)[0], expected)


def test_integers_are_cast_on_the_way_up_to_where_scales_have_the_type_of_the_data() -> None:
    inputs = {"x": DATA.astype(np.int32), "s": np.array(0.3, np.float32), "z": np.array(3, np.uint8)}
    outputs = {"y": (TensorProto.UINT8, DATA.shape)}
    model = model_of("QuantizeLinear", inputs, opset=13, constants=["s", "z"], outputs=outputs)
    result = converted(model, 19)
    assert operators_of(result) == ["Cast", "QuantizeLinear"]
    np.testing.assert_array_equal(yields(result, inputs)[0], quantized(inputs["x"], inputs["s"], inputs["z"]))


def test_the_dynamic_one_follows_where_neither_it_nor_rounding_exists() -> None:
    outputs = {
        "y": (TensorProto.UINT8, DATA.shape), "scale": (TensorProto.FLOAT, ()), "zero": (TensorProto.UINT8, ())
    }  # fmt: skip
    model = model_of("DynamicQuantizeLinear", {"x": DATA}, opset=11, outputs=outputs)
    for ours, theirs in zip(yields(converted(model, 9), {"x": DATA}), yields(model, {"x": DATA}), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("element_type", [TensorProto.INT4, TensorProto.FLOAT8E4M3FN])
def test_types_no_older_opset_has_are_refused(element_type: int) -> None:
    inputs = {"x": DATA, "s": np.array(0.5, np.float32)}
    outputs = {"y": (element_type, DATA.shape)}
    model = model_of("QuantizeLinear", inputs, opset=21, ir_version=10, outputs=outputs, output_dtype=element_type)
    with pytest.raises(ConversionError):
        reducelower.convert_version(model, 13)


def test_every_type_that_is_not_taken_counts_not_just_the_first() -> None:
    eight, half = np.ones((2, 2), np.uint8), np.array(0.5, np.float16)
    inputs = {"a": eight, "as": half, "az": eight[0, 0], "b": eight, "bs": half, "bz": eight[0, 0], "ys": half}
    inputs["yz"] = np.zeros((), ml_dtypes.float8_e5m2)
    outputs = {"y": (TensorProto.FLOAT8E5M2, (2, 2))}
    model = model_of("QLinearMatMul", inputs, opset=21, ir_version=10, outputs=outputs)
    with pytest.raises(ConversionError, match="does not take float8e5m2 at opset 16"):
        reducelower.convert_version(model, 16)


def test_products_of_floats_of_eight_bits_are_refused() -> None:
    eight = np.zeros((2, 2), ml_dtypes.float8_e4m3fn)
    scale, zero = np.array(0.5, np.float32), eight[0, 0]
    inputs = {"a": eight, "as": scale, "az": zero, "b": eight, "bs": scale, "bz": zero, "ys": scale, "yz": zero}
    outputs = {"y": (TensorProto.FLOAT8E4M3FN, (2, 2))}
    model = model_of("QLinearMatMul", inputs, opset=21, ir_version=10, outputs=outputs)
    with pytest.raises(ConversionError, match="quantizes to float8e4m3fn"):
        reducelower.convert_version(model, 9)


@pytest.mark.parametrize("kind", ["FLOAT4E2M1", "FLOAT8E4M3FN", "FLOAT8E5M2"])
def test_narrow_floats_with_a_zero_point_keep_their_fractions(kind: str) -> None:
    """Where a runtime lacks the operator: the zero point of these is zero, and no whole numbers are needed for it."""
    element_type = TensorProto.DataType.Value(kind)
    numbers = np.array([0, 1, -1, 1.5, -4, 0.5], helper.tensor_dtype_to_np_dtype(element_type))
    inputs = {"x": numbers, "s": np.array(2, np.float32), "z": np.zeros(1, numbers.dtype)}
    model = model_of("DequantizeLinear", inputs, opset=25, outputs={"y": (TensorProto.FLOAT, (6,))}, axis=0)
    made = reducelower.legalize(model, reducelower.Target(25, runtime=reducelower.load_runtime("mnn"))).model
    assert "DequantizeLinear" not in operators_of(made)
    found = ReferenceEvaluator(made).run(None, inputs)[0]
    np.testing.assert_array_equal(found, [0, 2, -2, 3, -8, 1])
