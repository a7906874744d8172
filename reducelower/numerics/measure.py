"""Measures how far two arrays are apart: shapes, NaN and infinities, ULP distance, absolute and relative error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from reducelower.numerics.tolerance import Tolerance

__all__ = [
    "Array",
    "Difference",
    "element_type_of",
    "exact_numbers",
    "identical",
    "in_order",
    "is_float",
    "is_narrow_float",
    "measure",
    "smallest_and_eps",
    "ulp_distance",
]

Array = npt.NDArray[Any]

_WIDE_FLOATS = {np.dtype(kind) for kind in (np.float16, np.float32, np.float64, ml_dtypes.bfloat16)}
_SIZES = {2: (np.uint16, 15), 4: (np.uint32, 31), 8: (np.uint64, 63)}


@dataclass(frozen=True)
class Difference:
    """How far two arrays of one element type and shape are apart.

    Attributes:
        mismatch: what is wrong, as a sentence; empty when the arrays are the same within the tolerance.
        max_ulp, p99_ulp, mean_ulp: ULP distances over the pairs of finite values; 0 where there are none.
        max_absolute, max_relative: largest errors over the same pairs; relative to the largest expected magnitude.
        outside: how many values are outside the tolerance.
    """

    mismatch: str = ""
    max_ulp: int = 0
    p99_ulp: float = 0.0
    mean_ulp: float = 0.0
    max_absolute: float = 0.0
    max_relative: float = 0.0
    outside: int = 0


def is_float(array: Array) -> bool:
    """Whether the array holds floats that have a ULP distance: float16, bfloat16, float, double."""
    return array.dtype in _WIDE_FLOATS


def is_narrow_float(array: Array) -> bool:
    """Whether the array holds floats of eight bits or fewer, as ml_dtypes names them."""
    return array.dtype.name.startswith("float") and array.dtype.itemsize == 1


def smallest_and_eps(dtype: np.dtype[Any]) -> tuple[float, float, float]:
    """Smallest subnormal, machine epsilon and largest finite value of a float type."""
    info: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]  # ml_dtypes leaves it untyped
    return float(info.smallest_subnormal), float(info.eps), float(info.max)


def in_order(array: Array) -> npt.NDArray[np.uint64]:
    """Floats as unsigned integers in the same order, so that neighbours are one apart; both zeros are one value."""
    unsigned, sign_bit = _SIZES[array.dtype.itemsize]
    bits = np.ascontiguousarray(array).view(unsigned).astype(np.uint64).reshape(array.shape)
    sign = np.uint64(1) << np.uint64(sign_bit)
    magnitude = bits & (sign - np.uint64(1))
    ordered: npt.NDArray[np.uint64] = np.where(bits & sign, sign - magnitude, sign + magnitude)
    return ordered


def ulp_distance(before: Array, after: Array) -> npt.NDArray[np.uint64]:
    """Distance in units in the last place, counted in the values the type can hold; meaningless for NaN."""
    left, right = in_order(before), in_order(after)
    return np.maximum(left, right) - np.minimum(left, right)


def element_type_of(value: Array) -> str:
    """The ONNX element type that a numpy array stands for."""
    from onnx import helper

    from reducelower.numerics.tolerance import element_type_name

    if value.dtype.kind in "OSUT":
        return "string"
    try:
        return element_type_name(helper.np_dtype_to_tensor_dtype(value.dtype))
    except (KeyError, ValueError):
        return str(value.dtype)


def exact_numbers(array: Array) -> Array:
    """Bytes as text, and floats of eight bits or fewer as float32: forms that numpy compares."""
    if array.dtype.kind in "OSUT":
        flat = [item.decode() if isinstance(item, bytes) else str(item) for item in array.ravel().tolist()]
        return np.array(flat, dtype=object).reshape(array.shape)
    return array.astype(np.float32) if is_narrow_float(array) else array


def identical(before: Array, after: Array) -> bool:
    """Whether two arrays have the same type, shape and bits, as most have; the bits of references say nothing."""
    alike = before.dtype == after.dtype and not before.dtype.hasobject and before.shape == after.shape
    return alike and before.tobytes() == after.tobytes()


def measure(before: Array, after: Array, tolerance: Tolerance, *, allowance: float = 0.0) -> Difference:
    """Compare two arrays of one element type and shape.

    Args:
        before: what is expected.
        after: what came out.
        tolerance: the bounds, any of which makes a value pass.
        allowance: an absolute error to accept on top, in the tensor's units.

    Returns:
        The distances, and a sentence when a value is outside the tolerance.
    """
    if identical(before, after):
        return Difference()
    if before.dtype.kind == "c":
        parts = [
            measure(np.ascontiguousarray(part(before)), np.ascontiguousarray(part(after)), tolerance)
            for part in (np.real, np.imag)
        ]
        return max(parts, key=lambda part: (bool(part.mismatch), part.max_ulp))
    if not is_float(before):
        return _measure_exact(exact_numbers(before), exact_numbers(after))
    for name, test in (("NaN", np.isnan), ("+inf", np.isposinf), ("-inf", np.isneginf)):
        here, there = _holds(test, before), _holds(test, after)
        if (here != there).any():
            where = np.argwhere(np.atleast_1d(here != there))[0]
            count = int((here != there).sum())
            return Difference(
                f"{name} stands at different positions: {int(here.sum())} before, {int(there.sum())} after; "
                f"first at {_index(where, before)}: {_at(before, where)} before, {_at(after, where)} after",
                outside=count,
            )
    finite = np.isfinite(before.astype(np.float64)) & np.isfinite(after.astype(np.float64))
    if not finite.any():
        return Difference()
    left, right = before[finite], after[finite]
    ulps = ulp_distance(left, right)
    wide = np.float64 if before.dtype.itemsize < 8 else np.longdouble
    errors = np.abs(left.astype(wide) - right.astype(wide))
    largest = np.abs(left.astype(wide)).max()
    bound = max(tolerance.absolute, allowance, float(tolerance.relative * largest))
    outside = (ulps > np.uint64(tolerance.ulp)) & (errors > bound)
    mismatch = ""
    if outside.any():
        worst = int(np.argmax(np.where(outside, errors, -1)))
        where = np.argwhere(np.atleast_1d(finite))[worst]
        mismatch = (
            f"{int(outside.sum())} of {before.size} values differ; the largest error is {float(errors[worst]):.3g} at "
            f"{_index(where, before)}: {_at(before, where)} before, {_at(after, where)} after ({int(ulps[worst])} ULP)"
        )
    return Difference(
        mismatch,
        int(ulps.max()),
        float(np.percentile(ulps.astype(np.float64), 99)),
        float(ulps.astype(np.float64).mean()),
        float(errors.max()),
        float(errors.max() / largest) if largest else (0.0 if not errors.max() else float("inf")),
        int(outside.sum()),
    )


def _holds(test: Any, array: Array) -> npt.NDArray[np.bool_]:
    """Apply a NaN or infinity test; a widening cast, because ml_dtypes types lack some of numpy's functions."""
    return np.asarray(test(array.astype(np.float64)))


def _measure_exact(before: Array, after: Array) -> Difference:
    """Compare values that must be identical; NaN equals NaN, for the small float types that come here."""
    differ = np.asarray(before != after)
    if before.dtype.kind == "f":
        differ &= ~(np.isnan(before) & np.isnan(after))
    if not differ.any():
        return Difference()
    where = np.argwhere(np.atleast_1d(differ))[0]
    largest_error = relative = 0.0
    if before.dtype.kind in "iuf":
        # int64 and uint64 need longdouble: a double cannot tell their largest values apart.
        errors = np.abs(before.astype(np.longdouble) - after.astype(np.longdouble))
        largest_error = float(np.nanmax(errors))
        largest = float(np.nanmax(np.abs(before.astype(np.longdouble))))
        relative = largest_error / largest if largest else float("inf")
    return Difference(
        f"{int(differ.sum())} of {before.size} values differ; first at {_index(where, before)}: "
        f"{_at(before, where)} before, {_at(after, where)} after",
        max_absolute=largest_error,
        max_relative=relative,
        outside=int(differ.sum()),
    )


def _index(where: npt.NDArray[np.intp], array: Array) -> str:
    return str([int(step) for step in where]) if array.ndim else "[]"


def _at(array: Array, where: npt.NDArray[np.intp]) -> str:
    value = np.atleast_1d(array)[tuple(where)]
    return repr(value) if isinstance(value, str) else str(value)
