"""Bounds of Clip that are left out, which opsets 6 and 11 gave other meanings."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from tests.adapters.models import converted, one

LARGEST = {dtype: float(np.finfo(dtype).max) for dtype in (np.float16, np.float32, np.float64)}


@pytest.mark.parametrize(("dtype", "bound"), [(np.float16, np.inf), (np.float64, LARGEST[np.float32])])
def test_up_to_10_a_bound_left_out_is_the_largest_float32(dtype: type, bound: float) -> None:
    data = np.array([np.inf, LARGEST[dtype], 1, -1], dtype)
    made = one("Clip", {"x": data}, 10, inputs=["x"], min=0.0) if dtype is np.float16 else _clip_6(data)
    (result,) = ReferenceEvaluator(converted(made, 13)).run(None, {"x": data})
    np.testing.assert_array_equal(result, np.minimum(np.maximum(data, 0), dtype(bound)))


def _clip_6(data: np.ndarray) -> object:
    from onnx import helper

    from tests.adapters.single import model_of

    element_type = helper.np_dtype_to_tensor_dtype(data.dtype)
    return model_of("Clip", {"x": data}, opset=10, outputs={"y": (element_type, data.shape)}, min=0.0)
