"""Gelu, Celu, Sign and IsInf where the target has none: at the ends of the numbers, too."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from tests.adapters.models import assert_same, converted, one

F32 = np.finfo(np.float32)


def _celu(data: np.ndarray, alpha: float) -> np.ndarray:
    wide = data.astype(np.float64)
    with np.errstate(all="ignore"):
        bent = alpha * (np.exp(wide / alpha) - 1)
        return (np.maximum(0, wide) + np.minimum(0, bent)).astype(data.dtype)


@pytest.mark.parametrize("target", [7, 11])
@pytest.mark.parametrize("alpha", [0.5, 2.0, -0.5])
def test_celu_is_what_its_page_says_of_any_number(alpha: float, target: int) -> None:
    data = np.float32([F32.max, 3e38, 1, 1e-30, 0, -1e-3, -1, -20, -np.inf, np.inf, np.nan])
    if alpha < 0:
        data = data[data > -20]  # the exponential overflows for what lies further below
    assert_same(one("Celu", {"x": data}, 13, alpha=alpha), {"x": data}, target, _celu(data, alpha))


def test_celu_of_a_scalar_is_a_scalar() -> None:
    data = np.array(-3, np.float32)
    assert_same(one("Celu", {"x": data}, 13, alpha=0.5), {"x": data}, 11, _celu(data, 0.5))


@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_gelu_of_large_numbers_is_those_numbers(dtype: type, approximate: str) -> None:
    largest = np.finfo(dtype).max
    data = np.array([largest, largest / 2, 30, -30, -largest], dtype)
    lowered = converted(one("Gelu", {"x": data}, 20, approximate=approximate), 19)
    with np.errstate(over="ignore"):
        (result,) = ReferenceEvaluator(lowered).run(None, {"x": data})
    np.testing.assert_array_equal(result, np.array([largest, largest / 2, 30, 0, 0], dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_number_has_no_sign(dtype: type) -> None:
    data = np.array([np.nan, np.inf, -np.inf, 5, -5e-324, -0.0], dtype)
    assert_same(one("Sign", {"x": data}, 13), {"x": data}, 8, np.sign(data))


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint64])
def test_signs_of_integers(dtype: type) -> None:
    limits = np.iinfo(dtype)
    data = np.array([limits.min, 0, 1, limits.max], dtype)
    lowered = converted(one("Sign", {"x": data}, 13), 8)
    (result,) = ReferenceEvaluator(lowered).run(None, {"x": data})
    np.testing.assert_array_equal(result, np.sign(data))
    assert result.dtype == dtype


def test_infinities_of_bfloat16_where_is_inf_takes_none() -> None:
    import ml_dtypes

    data = np.array([np.inf, -np.inf, np.nan, 3.3e38], ml_dtypes.bfloat16)
    lowered = converted(one("IsInf", {"x": data}, 20), 13)
    (result,) = ReferenceEvaluator(lowered).run(None, {"x": data})
    np.testing.assert_array_equal(result, [True, True, False, False])
