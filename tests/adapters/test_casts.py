"""What the table of casts rests on."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import checker
from onnx.reference import ReferenceEvaluator

import reducelower
from tests.models import converted, floats, model, operators
from tools.fuzz.runtimes import run


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("compute", [np.add, np.subtract, np.multiply, np.divide])
def test_rounding_twice_is_rounding_once(compute: Any, dtype: Any) -> None:
    bits = np.random.default_rng(0).integers(0, 2**16, (2, 200_000), dtype=np.uint16)
    left, right = bits.view(dtype)
    with np.errstate(all="ignore"):
        twice = compute(left.astype(np.float32), right.astype(np.float32)).astype(dtype)
        # Longer than twice the digits: rounding from there is rounding the exact result.
        once = compute(left.astype(np.longdouble), right.astype(np.longdouble)).astype(np.float64)
        exact = once.astype(dtype) if dtype is np.float16 else _rounded(once)
    same = (twice == exact) | (np.isnan(twice) & np.isnan(exact))
    assert same.all()


def _rounded(values: np.ndarray) -> np.ndarray:
    """To bfloat16 in one step: float64 to float32 toward odd, then to nearest (Boldo and Melquiond, 2008)."""
    near = values.astype(np.float32)
    inexact = near.astype(np.float64) != values
    away = np.abs(near.astype(np.float64)) > np.abs(values)
    bits = near.view(np.uint32).copy()
    bits[inexact & away & np.isfinite(near)] -= 1
    bits[inexact & np.isfinite(near)] |= 1
    return bits.view(np.float32).astype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("op_type", ["Cos", "Elu", "Softplus", "Round", "GlobalMaxPool"])
def test_bfloat16_computes_in_float32_below_22(op_type: str) -> None:
    data = floats(1, 2, 3, 4).astype(ml_dtypes.bfloat16)
    shape = "[1,2,1,1]" if op_type == "GlobalMaxPool" else "[1,2,3,4]"
    text = f"({{0}}[1,2,3,4] x) => ({{0}}{shape} y) {{{{ y = {op_type} (x) }}}}"
    made = converted(model(text.format("bfloat16"), 22, 10), 18)
    assert operators(made) == ["Cast", op_type, "Cast"]
    (got,) = ReferenceEvaluator(made).run(None, {"x": data})
    (wide,) = ReferenceEvaluator(model(text.format("float"), 21, 10)).run(None, {"x": data.astype(np.float32)})
    np.testing.assert_array_equal(got.astype(np.float32), wide.astype(ml_dtypes.bfloat16).astype(np.float32))


def test_a_cast_below_6_tells_its_type_also_of_data_of_unknown_rank() -> None:
    text = "(int32[n] x, int64[k] shape) => (int32[a, b] y) { blurred = Reshape (x, shape)  y = Flatten (blurred) }"
    made = model(text, 14, 7)
    result = reducelower.convert_version(made, 5)
    checker.check_model(result, full_check=True)
    feeds = {"x": np.arange(6, dtype=np.int32), "shape": np.array([2, 1, 3])}
    found = run("reference", result, feeds).values  # which knows Cast as it was
    assert found is not None
    np.testing.assert_array_equal(found[0], [[0, 1, 2], [3, 4, 5]])
