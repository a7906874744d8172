"""Windows of cosines where the target has none, against their formulas."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.adapters.models import converted, one, run

COEFFICIENTS = {
    "HannWindow": (0.5, 0.5, 0.0),
    "HammingWindow": (25 / 46, 21 / 46, 0.0),
    "BlackmanWindow": (0.42, 0.5, 0.08),
}


def _window(op_type: str, size: int, periodic: int) -> np.ndarray:
    a0, a1, a2 = COEFFICIENTS[op_type]
    angles = 2 * np.pi * np.arange(size) / (size if periodic else size - 1)
    return a0 - a1 * np.cos(angles) + a2 * np.cos(2 * angles)


@pytest.mark.parametrize("periodic", [0, 1])
@pytest.mark.parametrize("op_type", COEFFICIENTS)
def test_doubles_have_the_digits_of_doubles(op_type: str, periodic: int) -> None:
    size = {"n": np.array(13, np.int64)}
    made = one(op_type, size, 17, output_datatype=TensorProto.DOUBLE, periodic=periodic)
    (result,) = run(converted(made, 16), size)
    np.testing.assert_allclose(result, _window(op_type, 13, periodic), rtol=0, atol=4e-15)


@pytest.mark.parametrize("element_type", [TensorProto.FLOAT, TensorProto.INT32, TensorProto.FLOAT16])
@pytest.mark.parametrize("op_type", COEFFICIENTS)
def test_other_types_are_cast(op_type: str, element_type: int) -> None:
    size = {"n": np.array(8, np.int32)}
    dtype = helper.tensor_dtype_to_np_dtype(element_type)
    made = one(op_type, size, 17, output_datatype=element_type)
    (result,) = run(converted(made, 9), size)
    assert result.dtype == dtype
    np.testing.assert_allclose(result, _window(op_type, 8, 1).astype(dtype), atol=1e-3 if dtype == np.float16 else 1e-6)
