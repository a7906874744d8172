"""Bounds of Clip that are left out, which opsets 6 and 11 gave other meanings."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from tests.adapters.models import assert_same, converted, one

LARGEST = {dtype: float(np.finfo(dtype).max) for dtype in (np.float16, np.float32, np.float64)}


def test_doubles_beyond_float32_have_no_upper_bound_below_11() -> None:
    data = np.array([1e300, -1e300, 1.0])
    made = one("Clip", {"x": data}, 13, constants={"low": np.float64(0)})
    assert_same(made, {"x": data}, 10, np.array([1e300, 0.0, 1.0]))


@pytest.mark.parametrize("dtype", LARGEST)
def test_since_11_infinity_is_clipped_to_the_largest_number_of_the_type(dtype: type) -> None:
    # "They default to numeric_limits::lowest() and numeric_limits::max()", says the page of Clip 11.
    data = np.array([np.inf, -np.inf, 1], dtype)
    made = one("Clip", {"x": data}, 13)
    (result,) = ReferenceEvaluator(converted(made, 10)).run(None, {"x": data})
    np.testing.assert_array_equal(result, np.array([LARGEST[dtype], -LARGEST[dtype], 1], dtype))


@pytest.mark.parametrize("names", [["x", "bound"], ["x", "", "bound"]])
def test_infinity_is_clipped_where_one_bound_is_computed(names: list[str]) -> None:
    feeds = {"x": np.array([np.inf, -np.inf, 1, 5], np.float32), "bound": np.array(2, np.float32)}
    made = one("Clip", feeds, 13, inputs=names)
    low, high = (2, LARGEST[np.float32]) if len(names) == 2 else (-LARGEST[np.float32], 2)
    assert_same(made, feeds, 10, np.clip(feeds["x"], np.float32(low), np.float32(high)))


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
