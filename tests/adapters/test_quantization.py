"""QuantizeLinear and DequantizeLinear yield the same integers and numbers in every opset."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import reducelower
from tests.adapters.single import model_of, operators_of

RANDOM = np.random.default_rng(11)
DATA = (RANDOM.normal(size=(3, 4, 5)) * 50).astype(np.float32)
DATA[0, 0] = [0.5, 1.5, 2.5, -0.5, -1.5]  # halves go to the even neighbour


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
