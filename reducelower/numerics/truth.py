"""Reduce operators in exact arithmetic: what a result has to be near.

Floats become decimals, summed exactly, with roots and logarithms to 60 digits; integers are Python's. So nothing
depends on a runtime or on the width of a C type. The definitions are those of the operators' pages at opset 20
(https://onnx.ai/onnx/operators).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from functools import cached_property
from typing import Any

import numpy as np

__all__ = ["Specimen", "intermediate", "reduce_floats", "reduce_integers"]


@dataclass(frozen=True, eq=False)
class Specimen:
    """A call of a Reduce operator; axes are None if it has no such input."""

    data: np.ndarray[Any, Any]
    axes: tuple[int, ...] | None = None
    keepdims: bool = True
    noop: bool = False

    @property
    def reduced_axes(self) -> tuple[int, ...]:
        """The reduced axes, counted from the front; if none are stated, all of them, or with `noop` none."""
        if self.axes:
            return tuple(sorted({axis % self.data.ndim for axis in self.axes}))
        return () if self.noop else tuple(range(self.data.ndim))

    def result_shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        result = np.zeros(self.data.shape).sum(self.reduced_axes, keepdims=self.keepdims)
        return np.shape(result)

    @cached_property
    def _rows(self) -> np.ndarray[Any, Any]:
        """A row for each element of the result, in row-major order: what it is reduced from."""
        reduced = self.reduced_axes
        kept = [axis for axis in range(self.data.ndim) if axis not in reduced]
        count = math.prod(self.data.shape[axis] for axis in kept)
        rows = self.data.transpose(*kept, *reduced).reshape(count, self.length)
        return rows if self.data.dtype.kind in "iub" else rows.astype(np.float64)

    @property
    def length(self) -> int:
        """How many numbers an element of the result is reduced from."""
        return math.prod(self.data.shape[axis] for axis in self.reduced_axes)

    def group(self, at: int) -> list[Any]:
        """The Python numbers that an element of the result is reduced from."""
        group: list[Any] = self._rows[at].tolist()
        return group

    def groups(self) -> Iterator[list[Any]]:
        """The numbers of each element of the result, in row-major order."""
        return map(self.group, range(len(self._rows)))


_DIGITS = Context(prec=60, Emax=999999, Emin=-999999, traps=[])
_ALL_DIGITS = Context(prec=3000, Emax=999999, Emin=-999999, traps=[])
"""Enough to sum doubles, or squares of doubles, without rounding."""

_INFINITY = Decimal("Infinity")
_NAN = Decimal("NaN")


def _log(value: Decimal) -> Decimal:
    if value.is_nan() or value < 0:
        return _NAN
    return -_INFINITY if value == 0 else value.ln()


def _sum(values: Sequence[Decimal]) -> Decimal:
    infinite = {value for value in values if value.is_infinite()}
    if len(infinite) == 2:
        return _NAN
    if infinite:
        return infinite.pop()
    with localcontext(_ALL_DIGITS):
        return sum(values, Decimal(0))


def _log_sum_exp(values: Sequence[Decimal]) -> Decimal:
    top = max(values, default=-_INFINITY)
    if top.is_infinite():
        return top
    # Below -10**5 the exponential is zero in every element type, but not yet near the smallest decimal.
    return top + _log(_sum([(value - top).exp() for value in values if value - top > -100000]))


def _square_sum(values: Sequence[Decimal]) -> Decimal:
    with localcontext(_ALL_DIGITS):
        return _sum([value * value for value in values])


_FLOATS: dict[str, Callable[[Sequence[Decimal]], Decimal]] = {
    "ReduceL1": lambda values: _sum([abs(value) for value in values]),
    "ReduceL2": lambda values: _square_sum(values).sqrt(),
    "ReduceLogSum": lambda values: _log(_sum(values)),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": lambda values: max(values, default=-_INFINITY),
    "ReduceMean": lambda values: _sum(values) / len(values) if values else _NAN,
    "ReduceMin": lambda values: min(values, default=_INFINITY),
    "ReduceProd": lambda values: math.prod(values, start=Decimal(1)),
    "ReduceSum": _sum,
    "ReduceSumSquare": _square_sum,
}

_EXACT: dict[str, Callable[[Sequence[int]], int]] = {
    "ReduceL1": lambda values: sum(map(abs, values)),
    "ReduceL2": lambda values: math.isqrt(sum(value * value for value in values)),
    "ReduceProd": math.prod,
    "ReduceSum": sum,
    "ReduceSumSquare": lambda values: sum(value * value for value in values),
}

_EXTREMES = frozenset({"ReduceMax", "ReduceMin"})
_TRUNCATED = frozenset({"ReduceLogSum", "ReduceLogSumExp"})


def reduce_floats(op_type: str, values: Sequence[float]) -> Decimal | None:
    """The exact result; None if the specification leaves it open (maximum and minimum with NaN, mean of nothing)."""
    if any(map(math.isnan, values)):
        return None if op_type in _EXTREMES else _NAN
    if not values and op_type == "ReduceMean":
        return None
    with localcontext(_DIGITS):
        return _FLOATS[op_type]([Decimal(value) for value in values])


def intermediate(op_type: str, values: Sequence[float]) -> tuple[Decimal, Decimal]:
    """The smallest and the largest magnitude that some order of the operations may meet on the way; 0 for neither.

    Sums of one sign and all other operators meet none that is larger than the result.
    """
    numbers = [abs(Decimal(value)) for value in values if math.isfinite(value)]
    with localcontext(_DIGITS):
        if op_type == "ReduceProd":
            above, below = ([number for number in numbers if (number > 1) == is_above] for is_above in (True, False))
            return math.prod(filter(None, below), start=Decimal(1)), math.prod(above, start=Decimal(1))
        if op_type in _SUMMING and min(values, default=0) < 0 < max(values, default=0):
            return Decimal(0), sum(numbers, Decimal(0))
    return Decimal(0), Decimal(0)


_SUMMING = frozenset({"ReduceLogSum", "ReduceMean", "ReduceSum"})


def reduce_integers(op_type: str, values: Sequence[int], lowest: int, largest: int) -> int | None:
    """The exact result, truncated to an integer; None if the element type cannot hold it or it is undefined."""
    if op_type in _EXTREMES:
        pick, nothing = (max, lowest) if op_type == "ReduceMax" else (min, largest)
        return pick(values, default=nothing)
    if op_type == "ReduceMean":
        return _truncated_quotient(sum(values), len(values)) if values else None
    if op_type in _TRUNCATED:
        real = reduce_floats(op_type, values)
        result = int(real) if real is not None and real.is_finite() else None
    else:
        result = _EXACT[op_type](values)
    return result if result is not None and lowest <= result <= largest else None


def _truncated_quotient(dividend: int, divisor: int) -> int:
    quotient = abs(dividend) // divisor
    return quotient if dividend >= 0 else -quotient
