"""QuantizeLinear and DequantizeLinear yield the same integers and numbers in every opset."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import reducelower
from reducelower import ConversionError
from tests.adapters.single import model_of, operators_of

RANDOM = np.random.default_rng(11)
DATA = (RANDOM.normal(size=(3, 4, 5)) * 50).astype(np.float32)
DATA[0, 0] = [0.5, 1.5, 2.5, -0.5, -1.5]  # halves go to the even neighbour


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
