"""Measure the difference of two arrays: NaN and infinities, ULP distance, absolute and relative error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import numpy.typing as npt

from reducelower.model.schemas import element_type_name
from reducelower.numerics.tolerance import Tolerance

__all__ = [
    "Array",
    "Difference",
    "element_type_of",
    "exact_numbers",
    "holds_special",
    "identical",
    "is_float",
    "is_lost",
    "is_narrow_float",
    "lowest_and_highest",
    "magnitude",
    "measure",
    "smallest_and_eps",
    "widened",
]

Array = npt.NDArray[Any]

_WIDE_FLOATS = {np.dtype(kind) for kind in (np.float16, np.float32, np.float64, ml_dtypes.bfloat16)}
_BLOCK = 1 << 18  # elements that are compared at a time, since that takes many times their memory
_SIZES = {2: (np.uint16, 15), 4: (np.uint32, 31), 8: (np.uint64, 63)}


@dataclass(frozen=True)
class Difference:
    """The difference of two arrays of one element type and shape.

    Attributes:
        mismatch: what is wrong, as a sentence; empty if the arrays agree within the tolerance.
        max_ulp: the largest ULP distance over pairs of finite values; 0 if there are none.
        max_absolute, max_relative: largest errors over the same pairs; relative to the largest expected magnitude.
        loses_range: whether all values outside the tolerance are finite on the left, and infinite, NaN or underflown to
            zero on the right.
        gains_range: whether all of them are infinite or NaN on the left and finite on the right, or NaN on the left and
            infinite on the right.
        elements: mask of the values outside the tolerance; None if there are none.
    """

    mismatch: str = ""
    max_ulp: int = 0
    max_absolute: float = 0.0
    max_relative: float = 0.0
    loses_range: bool = False
    gains_range: bool = False
    elements: npt.NDArray[np.bool_] | None = None


def is_float(array: Array) -> bool:
    """Whether the array has floats with a ULP distance: float16, bfloat16, float, double."""
    return array.dtype in _WIDE_FLOATS


def holds_special(values: Iterable[Any]) -> bool:
    """Whether some arrays hold NaN or an infinity; values that are not arrays are ignored."""
    floats = (value for value in values if isinstance(value, np.ndarray) and is_float(value))
    return any(not np.isfinite(value.astype(np.float64)).all() for value in floats)


def widened(array: Array) -> Array:
    """The same numbers in a type that keeps their differences, too."""
    wide: Array = array.astype(np.float64 if array.dtype.itemsize < 8 else np.longdouble)
    return wide


def magnitude(values: Iterable[Any]) -> float:
    """The largest finite magnitude among arrays of floats; 0 if there are none."""
    floats = (widened(value) for value in values if isinstance(value, np.ndarray) and is_float(value))
    return max((float(_largest(value)) for value in floats), default=0.0)


def is_narrow_float(array: Array) -> bool:
    """Whether the array has floats of eight bits or fewer, from ml_dtypes."""
    return array.dtype.itemsize == 1 and array.dtype.name.startswith("float")  # numpy builds the name on each access


def smallest_and_eps(dtype: np.dtype[Any]) -> tuple[float, float, float]:
    """Smallest subnormal, machine epsilon and largest finite value of a float type."""
    info: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]  # ml_dtypes leaves it untyped
    return float(info.smallest_subnormal), float(info.eps), float(info.max)


def lowest_and_highest(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The range of an integer type, including 4-bit types."""
    info: Any = ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]  # as above
    return int(info.min), int(info.max)


def _in_order(array: Array) -> npt.NDArray[np.uint64]:
    """Floats mapped to unsigned integers in the same order: neighbours differ by one, and both zeros are equal."""
    unsigned, sign_bit = _SIZES[array.dtype.itemsize]
    bits = np.ascontiguousarray(array).view(unsigned).astype(np.uint64).reshape(array.shape)
    sign = np.uint64(1) << np.uint64(sign_bit)
    magnitude = bits & (sign - np.uint64(1))
    ordered: npt.NDArray[np.uint64] = np.where(bits & sign, sign - magnitude, sign + magnitude)
    return ordered


def _ulp_distance(before: Array, after: Array) -> npt.NDArray[np.uint64]:
    """Distance in units in the last place, by the order of the floats; meaningless for NaN."""
    left, right = _in_order(before), _in_order(after)
    return np.maximum(left, right) - np.minimum(left, right)


def element_type_of(value: Array) -> str:
    """The ONNX element type of a numpy array."""
    from onnx import helper

    if value.dtype.kind in "OSUT":
        return "string"
    try:
        return element_type_name(helper.np_dtype_to_tensor_dtype(value.dtype))
    except (KeyError, ValueError):
        return str(value.dtype)


def exact_numbers(array: Array) -> Array:
    """The array in a form that numpy can compare: bytes as text, narrow floats as float32."""
    if array.dtype.kind in "OSUT":
        flat = [item.decode() if isinstance(item, bytes) else str(item) for item in array.ravel().tolist()]
        return np.array(flat, dtype=object).reshape(array.shape)
    return array.astype(np.float32) if is_narrow_float(array) else array


def identical(before: Array, after: Array) -> bool:
    """Whether type, shape and bits are equal, as in most comparisons; object arrays are never identical."""
    alike = before.dtype == after.dtype and not before.dtype.hasobject and before.shape == after.shape
    if not alike or not before.size:
        return alike
    one, other = (np.ascontiguousarray(side).reshape(-1).view(np.uint8) for side in (before, after))
    return np.array_equal(one, other)


def measure(before: Array, after: Array, tolerance: Tolerance, *, by_tensor: bool = False) -> Difference:
    """Compare two arrays of one element type and shape, element by element; a tolerance is for floats.

    `by_tensor` applies the relative bound to the tensor's largest magnitude instead of the element's, for results of
    different runtimes.
    """
    if identical(before, after):
        return Difference()
    one, other = exact_numbers(before), exact_numbers(after)
    blocks = [slice(start, start + _BLOCK) for start in range(0, max(one.size, 1), _BLOCK)]
    sides = one.reshape(-1), other.reshape(-1)
    largest = 0.0 if one.dtype.hasobject else max(_largest(sides[0][block]) for block in blocks)
    compared = [_compared(sides[0][block], sides[1][block], tolerance, largest * by_tensor) for block in blocks]
    outside = np.concatenate([block.outside for block in compared]).reshape(before.shape)
    worst = max(block.error for block in compared)
    relative = float(worst / largest) if largest else (0.0 if not worst else float("inf"))
    distances = max(block.ulp for block in compared), float(worst), relative
    if not outside.any():
        return Difference("", *distances)
    only = all(block.are_lost for block in compared), all(block.are_gained for block in compared)
    return Difference(_sentence(one, other, outside), *distances, *only, outside)


class _Block(NamedTuple):
    """The largest distances of finite pairs, what is outside the tolerance, and whether all of that changes range."""

    ulp: int
    error: Any
    outside: Array
    are_lost: bool = False
    are_gained: bool = False


def _compared(before: Array, after: Array, tolerance: Tolerance, largest: float) -> _Block:
    """Compare two blocks; the relative bound applies to `largest`, or to each magnitude if that is 0."""
    outside = np.asarray(before != after)
    if before.dtype.hasobject:
        return _Block(0, 0.0, outside)
    left, right = widened(before), widened(after)
    finite = np.isfinite(left) & np.isfinite(right)
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.where(finite, np.abs(left - right), 0)
    outside &= ~(np.isnan(left) & np.isnan(right))
    ulps = np.zeros(before.shape, np.uint64)
    if is_float(before):
        ulps = np.where(finite, _ulp_distance(before, after), ulps)
        sizes = largest or np.where(np.isfinite(left), np.abs(left), 0)
        is_near = errors <= np.maximum(tolerance.absolute, tolerance.relative * sizes)
        outside &= ~(finite & (is_near | (ulps <= np.uint64(tolerance.ulp))))
    is_gained = np.where(np.isnan(left), ~np.isnan(right), np.isinf(left) & np.isfinite(right))
    are_lost, are_gained = (bool(mask[outside].all()) for mask in (is_lost(left, right, before.dtype), is_gained))
    return _Block(int(ulps.max(initial=0)), errors.max(initial=0), outside, are_lost, are_gained)


def _largest(values: Array) -> Any:
    wide = widened(values)
    return np.where(np.isfinite(wide), np.abs(wide), 0).max(initial=0)


def is_lost(left: Array, right: Array, dtype: np.dtype[Any]) -> npt.NDArray[np.bool_]:
    """Where widened values are finite on the left, and infinite, NaN or underflown to zero in a type on the right.

    Underflown are zeros instead of numbers whose squares underflow.
    """
    is_gone = ~np.isfinite(right)
    if is_float(np.zeros(0, dtype)):
        subnormal, eps, _ = smallest_and_eps(dtype)
        is_gone |= (right == 0) & (left != 0) & (np.abs(left) < (subnormal / eps) ** 0.5)
    return np.asarray(np.isfinite(left) & is_gone)


def _sentence(before: Array, after: Array, outside: Array) -> str:
    """The number of elements that differ, with the first NaN or infinity among them, or else the largest error."""
    places, where = np.flatnonzero(outside), "first"
    at = places[0]
    if before.dtype.kind not in "bO":
        with np.errstate(invalid="ignore", over="ignore"):
            errors = np.abs(widened(before.ravel()[places]) - widened(after.ravel()[places]))
        if np.isfinite(errors).all():
            at, where = places[int(errors.argmax())], f"the largest error is {float(errors.max()):.3g}"
        else:
            at = places[int(np.argmin(np.isfinite(errors)))]
    index = [int(number) for number in np.unravel_index(at, before.shape)]
    one, other = (_told(side.ravel()[at]) for side in (before, after))
    return f"{len(places)} of {before.size} values differ; {where} at {index}: {one} before, {other} after"


def _told(value: Any) -> str:
    return repr(value) if isinstance(value, str) else str(value)
