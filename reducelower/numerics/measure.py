"""Measure the difference of two arrays: shapes, NaN and infinities, ULP distance, absolute and relative error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

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
        outside: number of values outside the tolerance.
        lost: how many of those are finite on the left, and infinite, NaN or underflown to zero on the right.
        gained: how many of those are infinite or NaN on the left and finite on the right, or NaN on the left and
            infinite on the right.
        elements: mask of the values outside the tolerance; None if there are none.
    """

    mismatch: str = ""
    max_ulp: int = 0
    max_absolute: float = 0.0
    max_relative: float = 0.0
    outside: int = 0
    lost: int = 0
    gained: int = 0
    elements: npt.NDArray[np.bool_] | None = None

    @property
    def loses_range(self) -> bool:
        """Whether every value outside the tolerance is one that the right side loses."""
        return bool(self.outside) and self.lost == self.outside

    @property
    def gains_range(self) -> bool:
        """Whether every value outside the tolerance is one that the right side gains."""
        return bool(self.outside) and self.gained == self.outside


def is_float(array: Array) -> bool:
    """Whether the array has floats with a ULP distance: float16, bfloat16, float, double."""
    return array.dtype in _WIDE_FLOATS


def holds_special(values: Iterable[Any]) -> bool:
    """Whether some arrays hold NaN or an infinity; values that are not arrays are ignored."""
    floats = (value for value in values if isinstance(value, np.ndarray) and is_float(value))
    return any(not np.isfinite(value.astype(np.float64)).all() for value in floats)


def widened(array: Array) -> Array:
    """The same numbers in a type that keeps their differences, too."""
    wide: Array = array.astype(_wide(array.dtype))
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


def measure(
    before: Array, after: Array, tolerance: Tolerance, *, allowance: Array | float = 0.0, by_tensor: bool = False
) -> Difference:
    """Compare two arrays of one element type and shape, element by element.

    `allowance` is another accepted absolute error, for all elements or for each. `by_tensor` applies the relative bound
    to the tensor's largest magnitude instead of the element's, for results of different runtimes.
    """
    if identical(before, after):
        return Difference()
    if before.dtype.kind == "c":
        pairs = [[np.ascontiguousarray(part(side)) for side in (before, after)] for part in (np.real, np.imag)]
        parts = [measure(one, other, tolerance, allowance=allowance, by_tensor=by_tensor) for one, other in pairs]
        return max(parts, key=lambda part: (bool(part.mismatch), part.max_ulp))
    if not is_float(before):
        return _measure_exact(exact_numbers(before), exact_numbers(after), allowance)
    sides: tuple[Any, Any] = before.reshape(-1), after.reshape(-1)
    slices = [slice(start, start + _BLOCK) for start in range(0, max(before.size, 1), _BLOCK)]
    largest = max(_largest(sides[0][part]) for part in slices)
    is_per_element = np.ndim(allowance) > 0
    allowed: Any = np.broadcast_to(np.asarray(allowance), before.shape).reshape(-1) if is_per_element else allowance
    blocks = [
        _measure_block(
            sides[0][part],
            sides[1][part],
            tolerance,
            allowed[part] if is_per_element else allowed,
            largest if by_tensor else None,
        )
        for part in slices
    ]
    worst = max(block.worst for block in blocks)
    distances = (
        max(block.max_ulp for block in blocks),
        worst,
        float(worst / largest) if largest else (0.0 if not worst else float("inf")),
    )
    outside = np.concatenate([block.outside for block in blocks]).reshape(before.shape)
    if not outside.any():
        return Difference("", *distances)
    special = np.concatenate([block.special for block in blocks]).reshape(before.shape)
    lost, gained = sum(block.lost for block in blocks), sum(block.gained for block in blocks)
    sentence = _special_sentence(before, after, special) if special.any() else _error_sentence(before, after, outside)
    return Difference(sentence, *distances, int(outside.sum()), lost, gained, outside)


@dataclass(frozen=True)
class _Block:
    """The comparison of one block: the largest distances of finite pairs, masks, and counts."""

    max_ulp: int
    worst: float
    special: npt.NDArray[np.bool_]
    outside: npt.NDArray[np.bool_]
    lost: int
    gained: int


def _largest(values: Array) -> Any:
    wide = values.astype(_wide(values.dtype))
    return np.where(np.isfinite(wide), np.abs(wide), 0).max(initial=0)


def _wide(dtype: np.dtype[Any]) -> Any:
    return np.float64 if dtype.itemsize < 8 else np.longdouble


def _measure_block(
    before: Array, after: Array, tolerance: Tolerance, allowance: Array | float, largest: Any | None
) -> _Block:
    """Compare blocks of two arrays; the relative bound applies to `largest`, if given, else to each magnitude."""
    wide = _wide(before.dtype)
    left, right = before.astype(wide), after.astype(wide)
    finite = np.isfinite(left) & np.isfinite(right)
    special = ~finite & ~((left == right) | (np.isnan(left) & np.isnan(right)))
    ulps = np.where(finite, _ulp_distance(before, after), np.uint64(0))
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.where(finite, np.abs(left - right), 0)
    magnitudes = np.where(np.isfinite(left), np.abs(left), 0) if largest is None else largest
    bound = np.maximum(tolerance.absolute, tolerance.relative * magnitudes)
    outside = special | ((ulps > np.uint64(tolerance.ulp)) & (errors > np.maximum(bound, allowance)))
    lost = outside & np.isfinite(left) & (~np.isfinite(right) | _underflown(left, right, before.dtype))
    gained = outside & np.where(np.isnan(left), ~np.isnan(right), np.isinf(left) & np.isfinite(right))
    worst = float(errors.max(initial=0))
    return _Block(int(ulps.max(initial=0)), worst, special, outside, int(lost.sum()), int(gained.sum()))


def _underflown(left: Array, right: Array, dtype: np.dtype[Any]) -> npt.NDArray[np.bool_]:
    """Zeros instead of numbers whose squares underflow in the element type."""
    subnormal, eps, _ = smallest_and_eps(dtype)
    return np.asarray((right == 0) & (left != 0) & (np.abs(left) < (subnormal / eps) ** 0.5))


def _special_sentence(before: Array, after: Array, special: Array) -> str:
    where = _first_place(special)
    names = (("NaN", np.isnan), ("+inf", np.isposinf), ("-inf", np.isneginf))
    for name, test in names:
        here, there = _holds(test, before), _holds(test, after)
        if np.atleast_1d(here != there)[where]:
            return (
                f"{name} stands at different positions: {int(here.sum())} before, {int(there.sum())} after; "
                f"first at {_index(where, before)}: {_at(before, where)} before, {_at(after, where)} after"
            )
    raise AssertionError("a special value differs in none of the three kinds")


def _error_sentence(before: Array, after: Array, outside: Array) -> str:
    """The number of elements outside the tolerance, and the one with the largest error."""
    wide = _wide(before.dtype)
    left, right = (np.atleast_1d(side)[np.atleast_1d(outside)] for side in (before, after))
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.abs(left.astype(wide) - right.astype(wide))
    at = int(errors.argmax())
    where = _place(int(np.flatnonzero(outside)[at]), outside)
    return (
        f"{int(outside.sum())} of {before.size} values differ; the largest error is "
        f"{float(errors[at]):.3g} at {_index(where, before)}: {_at(before, where)} before, "
        f"{_at(after, where)} after"
    )


def _first_place(mask: Array) -> tuple[int, ...]:
    """The index of the first element where a mask is true; (0,) for a mask of rank 0."""
    return _place(int(np.argmax(mask)), mask)


def _place(at: int, array: Array) -> tuple[int, ...]:
    return tuple(int(number) for number in np.unravel_index(at, np.atleast_1d(array).shape))


def _holds(test: Any, array: Array) -> npt.NDArray[np.bool_]:
    """Apply a NaN or infinity test after a widening cast, because ml_dtypes types lack some numpy functions."""
    return np.asarray(test(array.astype(np.float64)))


def _measure_exact(before: Array, after: Array, allowance: Array | float) -> Difference:
    """Compare values that must be identical; NaN equals NaN, for the small float types handled here."""
    differ = np.asarray(before != after)
    if before.dtype.kind == "f":
        differ &= ~(np.isnan(before) & np.isnan(after))
    if before.dtype.kind in "iuf" and np.any(np.asarray(allowance) > 0):
        with np.errstate(invalid="ignore"):
            differ &= ~(np.abs(before.astype(np.longdouble) - after.astype(np.longdouble)) <= allowance)
    if not differ.any():
        return Difference()
    where = _first_place(differ)
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
        elements=differ,
    )


def _index(where: tuple[int, ...], array: Array) -> str:
    return str(list(where)) if array.ndim else "[]"


def _at(array: Array, where: tuple[int, ...]) -> str:
    value = np.atleast_1d(array)[where]
    return repr(value) if isinstance(value, str) else str(value)
