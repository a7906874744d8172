"""The right result of a Reduce operator, in extended precision, and how far rounding may move it.

The formulas are those of the operator pages (https://onnx.ai/onnx/operators/), the error bounds the standard ones of
floating-point summation (Higham, Accuracy and Stability of Numerical Algorithms, chapters 3 and 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reducelower.numerics.measure import Array, is_float, smallest_and_eps

__all__ = ["Reduction", "Truth", "axes_for", "evaluate"]

Mask = npt.NDArray[np.bool_]

_EXACT = 2.0**53
_SAFETY = 4.0  # kernels add blocks, pairs or single values, and round exp and log by up to a few ULP


@dataclass(frozen=True)
class Reduction:
    """A Reduce node without its data; axes are None if it states none, and `noop` then means to reduce nothing."""

    op_type: str
    axes: tuple[int, ...] | None
    keepdims: bool
    noop: bool

    def axes_for(self, rank: int) -> tuple[int, ...]:
        """The reduced axes for data of a rank, counted from the front."""
        return axes_for(self.axes, rank, noop=self.noop)


def axes_for(axes: tuple[int, ...] | None, rank: int, *, noop: bool) -> tuple[int, ...]:
    """The reduced axes, counted from the front; if none are stated, all of them, or with `noop` none."""
    if axes:
        return tuple(sorted({axis % rank for axis in axes}))
    return () if noop else tuple(range(rank))


@dataclass(frozen=True)
class Truth:
    """The right result and other legitimate results, per element.

    Attributes:
        value: the result in extended precision.
        bound: how far rounding in the element type may move it; infinite where the operator's page leaves the result
            open, or where cancellation leaves no correct digit.
        largest: largest finite value of the element type.
        order: where the order of the operations decides whether an intermediate result overflows.
        specified: the result of the operator's function body in its element types; None if it has no body.
        specified_bound: how far rounding may move that.
        maximum_without_nan: for ReduceMax and ReduceMin of data with a NaN, the result without it, which some runtimes
            return; else None.
    """

    value: Array
    bound: Array
    largest: float
    order: Mask
    specified: Array | None = None
    specified_bound: Array | None = None
    maximum_without_nan: Array | None = None

    def is_near(self, result: Array) -> Mask:
        """Where a result is right up to rounding."""
        return self._near(result, self.value, self.bound)

    def is_as_specified(self, result: Array) -> Mask:
        """Where a result is that of the operator's function body, up to rounding."""
        if self.specified is None or self.specified_bound is None:
            return np.zeros(self.value.shape, np.bool_)
        return self._near(result, self.specified, self.specified_bound)

    def _near(self, result: Array, value: Array, bound: Array) -> Mask:
        wide = result.astype(np.longdouble)
        with np.errstate(all="ignore"):
            close = np.abs(wide - value) <= bound
            overflow = np.abs(value) + bound >= self.largest
            close |= overflow & np.isinf(wide) & (np.sign(wide) == np.sign(value))
        close |= (wide == value) | (np.isnan(wide) & np.isnan(value)) | np.isposinf(bound)
        if self.maximum_without_nan is not None:
            close |= wide == self.maximum_without_nan
        return np.asarray(close)


def evaluate(reduction: Reduction, data: Array) -> Truth:
    """The right result of a reduction, with its rounding bound."""
    axes = reduction.axes_for(data.ndim)
    wide = data.astype(np.longdouble)
    floats = is_float(data)
    smallest, eps, largest = smallest_and_eps(data.dtype) if floats else (0.0, 0.0, float("inf"))
    count = int(np.prod([data.shape[axis] for axis in axes], dtype=np.int64)) if axes else 1
    with np.errstate(all="ignore"):
        reducer = _Reducer(wide, axes, reduction.keepdims, count, eps, largest, data.dtype)
        value, bound, order = getattr(reducer, reduction.op_type)()
        bound = _SAFETY * (bound + (count + 1) * smallest)
        if not floats:
            is_exact = reduction.op_type in ("ReduceMax", "ReduceMin")
            bound = np.zeros_like(value) if is_exact else _added_in_double(value, count)
            if reduction.op_type.startswith("ReduceLog"):
                bound = np.where(np.isfinite(value), bound, np.inf)  # no integer stands for it, nor does Cast define it
            if not is_exact:
                total = value * count if reduction.op_type == "ReduceMean" else value
                bound = np.where(_may_overflow(total, bound, data.dtype), np.inf, bound)
            value = _rounded_like(value, data.dtype)
        if reduction.op_type == "ReduceMean" and not count:
            bound = np.full_like(value, np.inf)  # the operator page: undefined
        specified, specified_bound = _specified(reduction.op_type, data, axes, reduction.keepdims, count, eps)
        without = None
        if floats and reduction.op_type in ("ReduceMax", "ReduceMin") and np.isnan(wide).any():
            # The operator pages do not define NaN; whether kernels keep it depends on its position.
            pick, worst = (np.max, -np.inf) if reduction.op_type == "ReduceMax" else (np.min, np.inf)
            without = pick(np.where(np.isnan(wide), worst, wide), axis=axes, keepdims=reduction.keepdims, initial=worst)
    return Truth(value, bound, largest, order, specified, specified_bound, without)


def _added_in_double(value: Array, count: int) -> Array:
    """The error of a sum of integers in onnxruntime, which adds them in double."""
    return np.where(np.abs(value) > _EXACT, (count + 1) / _EXACT * np.abs(value), 0)


def _may_overflow(value: Array, bound: Array, dtype: np.dtype[Any]) -> Mask:
    """Where a value may exceed the range of an integer type; no page says whether kernels then saturate or wrap."""
    if dtype == np.bool_:
        return np.zeros(value.shape, np.bool_)
    info = np.iinfo(dtype)
    return np.asarray((value - bound < info.min) | (value + bound > info.max))


def _rounded_like(value: Array, dtype: np.dtype[Any]) -> Array:
    """Truncate, as ONNX's Cast to integers does; an infinity, from an empty Max or Min, becomes the type's limit."""
    if dtype == np.bool_:
        return np.asarray(value > 0).astype(np.longdouble)
    info = np.iinfo(dtype)
    clipped = np.where(np.isneginf(value), np.longdouble(info.min), np.where(np.isposinf(value), info.max, value))
    return np.asarray(np.trunc(clipped))


@dataclass(frozen=True)
class _Reducer:
    """The ten operators in extended precision; each returns value, error bound before `_SAFETY`, and order mask."""

    data: Array
    axes: tuple[int, ...]
    keepdims: bool
    count: int
    eps: float
    largest: float
    dtype: np.dtype[Any]

    def _sum(self, values: Array) -> Array:
        return np.asarray(np.sum(values, axis=self.axes, keepdims=self.keepdims))

    def _none(self, value: Array) -> Mask:
        return np.zeros(value.shape, np.bool_)

    def _summed(self, values: Array) -> tuple[Array, Array, Mask]:
        value = self._sum(values)
        magnitude = self._sum(np.where(np.isfinite(values), np.abs(values), 0))
        # Without cancellation, the order of the additions does not matter for overflow.
        sides = self._sum(np.clip(values, None, 0)), self._sum(np.clip(values, 0, None))
        order = (magnitude > self.largest) & ~np.isnan(value) & (np.isinf(value) | (np.abs(value) <= self.largest))
        order &= (sides[0] < 0) & (sides[1] > 0)
        # If both signs overflow, and their sum as well, some orders give an infinity and others NaN.
        order |= (-sides[0] > self.largest) & (sides[1] > self.largest) & ~np.isnan(value)
        return value, (self.count + 1) * self.eps * magnitude, order

    def ReduceSum(self) -> tuple[Array, Array, Mask]:  # noqa: N802  # methods are looked up by operator
        return self._summed(self.data)

    def ReduceMean(self) -> tuple[Array, Array, Mask]:  # noqa: N802
        value, bound, order = self._summed(self.data)
        return value / self.count, bound / max(self.count, 1), order

    def ReduceL1(self) -> tuple[Array, Array, Mask]:  # noqa: N802
        return self._summed(np.abs(self.data))

    def ReduceSumSquare(self) -> tuple[Array, Array, Mask]:  # noqa: N802
        return self._summed(self.data * self.data)

    def ReduceL2(self) -> tuple[Array, Array, Mask]:  # noqa: N802
        value = np.sqrt(self._sum(self.data * self.data))
        return value, np.where(np.isfinite(value), (self.count + 2) * self.eps * value, 0), self._none(value)

    def ReduceLogSum(self) -> tuple[Array, Array, Mask]:  # noqa: N802
        total, bound, order = self._summed(self.data)
        value = np.log(total)
        lost = np.isfinite(total) & (np.abs(total) <= 2 * _SAFETY * bound) & (bound > 0)
        rounding = np.where(np.isfinite(value), bound / np.abs(total) + 2 * self.eps * (1 + np.abs(value)), 0)
        return value, np.where(lost, np.inf, rounding), order

    def ReduceLogSumExp(self) -> tuple[Array, Array, Mask]:  # noqa: N802
        top = np.max(self.data, axis=self.axes, keepdims=True, initial=-np.inf)
        shift = np.where(np.isfinite(top), top, 0)
        weights = np.exp(self.data - shift)
        total = np.sum(weights, axis=self.axes, keepdims=True)
        value = np.log(total) + shift
        # The rounding of x - max affects the result by each term's share in the sum.
        distance = np.where(weights > 0, weights * np.abs(self.data - shift), 0)
        spread = np.sum(distance, axis=self.axes, keepdims=True) / np.where(total > 0, total, 1)
        bound = np.where(np.isfinite(value), self.eps * (self.count + 4 + np.abs(value) + np.abs(shift) + spread), 0)
        if not self.keepdims:
            value, bound = np.squeeze(value, self.axes), np.squeeze(bound, self.axes)
        return value, bound, self._none(value)

    def ReduceProd(self) -> tuple[Array, Array, Mask]:  # noqa: N802
        value = np.asarray(np.prod(self.data, axis=self.axes, keepdims=self.keepdims))
        finite = np.where(np.isfinite(self.data), np.abs(self.data), 0)
        above = np.prod(np.maximum(finite, 1), axis=self.axes, keepdims=self.keepdims)
        positive = np.where(finite > 0, finite, 1)
        below = np.prod(np.minimum(positive, 1), axis=self.axes, keepdims=self.keepdims)
        bound = np.where(np.isfinite(value), (self.count + 1) * self.eps * np.abs(value), 0)
        if not self.eps:
            return value, bound, self._none(value)
        tiny = float(np.finfo(np.float64).tiny) if self.dtype.itemsize == 8 else self.eps / self.largest
        return value, bound, np.asarray(((above > self.largest) | (below < tiny)) & ~np.isnan(value))

    def ReduceMax(self) -> tuple[Array, Array, Mask]:  # noqa: N802
        value = np.max(self.data, axis=self.axes, keepdims=self.keepdims, initial=-np.inf)
        return value, np.zeros_like(value), self._none(value)

    def ReduceMin(self) -> tuple[Array, Array, Mask]:  # noqa: N802
        value = np.min(self.data, axis=self.axes, keepdims=self.keepdims, initial=np.inf)
        return value, np.zeros_like(value), self._none(value)


def _specified(
    op_type: str, data: Array, axes: tuple[int, ...], keepdims: bool, count: int, eps: float
) -> tuple[Array | None, Array | None]:
    """The result and error bound of the operator's function body in onnx.defs, in the element types it computes in.

    Bodies sum in the data's own type; ReduceL2's takes the square root in float, ReduceLogSumExp's computes in double.
    """

    def total(values: Array) -> Array:
        return np.asarray(np.sum(values, axis=axes, keepdims=keepdims, dtype=values.dtype))

    if op_type == "ReduceL2":
        result, inner = np.sqrt(total(data * data).astype(np.float32)), float(np.finfo(np.float32).eps)
    elif op_type == "ReduceLogSumExp":
        result, inner = np.log(total(np.exp(data.astype(np.float64)))), float(np.finfo(np.float64).eps)
    elif op_type == "ReduceLogSum" and not is_float(data):
        result, inner = np.log(total(data.astype(np.float64))), float(np.finfo(np.float64).eps)
    elif op_type == "ReduceLogSum":
        result, inner = np.log(total(data).astype(np.float64)), eps
    elif op_type in ("ReduceL1", "ReduceSumSquare"):
        terms = np.abs(data) if op_type == "ReduceL1" else data * data
        result, inner = total(terms), eps
    else:
        return None, None
    if not is_float(data):
        value = result.astype(data.dtype).astype(np.longdouble)
        if result.dtype.kind in "iu":
            whole = np.sum(terms.astype(np.longdouble), axis=axes, keepdims=keepdims)
            # A sum beyond the range is not specified: onnxruntime adds in double, and saturates or wraps.
            return value, np.where(whole == value, _added_in_double(value, count), np.inf)
        # A logarithm or root that is a whole number may come out just below it and be truncated to the next lower.
        rounding = _SAFETY * count * inner * np.abs(result)
        near_whole = (np.abs(result - np.round(result)) <= rounding) & (result != 0)
        return value, np.where(near_whole, np.maximum(rounding, 1), 0).astype(np.longdouble)
    result = result.astype(data.dtype).astype(np.longdouble)
    bound = np.where(np.isfinite(result), _SAFETY * (count + 4) * max(inner, eps) * (np.abs(result) + 1e-300), 0)
    return result, bound
