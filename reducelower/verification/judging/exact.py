"""Between which bounds the results of a Reduce operator are right, by its formula in exact arithmetic."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np

from reducelower.model.attributes import value_of
from reducelower.numerics.measure import Array, is_float, lowest_and_highest, smallest_and_eps
from reducelower.numerics.truth import Specimen, intermediate, reduce_floats, reduce_integers

__all__ = ["bounds", "specimen_of"]

_TRUNCATED = frozenset({"ReduceLogSum", "ReduceLogSumExp"})
_EXTREMES = frozenset({"ReduceMax", "ReduceMin"})
_IN_DOUBLE = 2**53  # above, not every integer is a double
_MOST = 100_000  # numbers in a sum; of more, the exact result takes too long
_NUMBERS = 20_000  # to work out on one set of values

_Bounds = tuple[Any, Any, bool]
_OPEN: _Bounds = -np.inf, np.inf, True
"""Any result is right, NaN included."""


def specimen_of(node: Any, values: dict[str, Any]) -> Specimen | None:
    """What a Reduce operator is called with; None if that is not known, and for long sums."""
    data, axes = (values.get(name) for name in (*node.input, "")[:2])
    if axes is None:
        axes = value_of(node, "axes")
    chosen = None if axes is None else tuple(np.ravel(axes).tolist())
    keeps, noop = bool(value_of(node, "keepdims", 1)), bool(value_of(node, "noop_with_empty_axes", 0))
    specimen = None if data is None else Specimen(data, chosen, keeps, noop)
    return specimen if specimen is not None and specimen.length <= _MOST else None


def bounds(op_type: str, specimen: Specimen, result: Array, elements: Array) -> tuple[Array, Array, Array]:
    """The least and the largest right value of each element, and whether NaN is right; NaN where it is not known.

    Args:
        op_type: the operator.
        specimen: what it is called with.
        result: what it gave.
        elements: a mask of those to work out, of which the first ones are.
    """
    work_out = _of_floats if is_float(result) else _of_integers
    low, high = np.full((2, result.size), np.nan, np.longdouble)
    takes_nan = np.zeros(result.size, np.bool_)
    for at in np.flatnonzero(elements)[: max(_NUMBERS // max(specimen.length, 1), 1)]:
        low[at], high[at], takes_nan[at] = work_out(op_type, specimen.group(at), result.dtype)
    return low.reshape(result.shape), high.reshape(result.shape), takes_nan.reshape(result.shape)


def _of_floats(op_type: str, values: list[Any], dtype: np.dtype[Any]) -> _Bounds:
    smallest, _, largest = smallest_and_eps(dtype)
    least, most = intermediate(op_type, values)
    if most > Decimal(largest) or 0 < least < Decimal(smallest):
        return _OPEN  # the order of the operations decides
    value = reduce_floats(op_type, values)
    is_open = value is None  # no page says whether a maximum or minimum of NaN and numbers is NaN
    if value is None and values:
        value = reduce_floats(op_type, [number for number in values if not np.isnan(number)])
    if value is None:
        return _OPEN
    wide = np.longdouble(f"{value:.30g}")
    return wide, wide, is_open or value.is_nan()


def _of_integers(op_type: str, values: list[Any], dtype: np.dtype[Any]) -> _Bounds:
    lowest, highest = lowest_and_highest(dtype) if dtype != np.bool_ else (0, 1)
    whole = reduce_integers(op_type, values, lowest, highest)
    slack = int(op_type in _TRUNCATED)  # just below a whole number, it is cut to the next lower
    total = sum(values) if op_type == "ReduceMean" else whole or 0
    if op_type not in _EXTREMES and abs(total) > _IN_DOUBLE:
        slack += (len(values) + 1) * abs(total) // _IN_DOUBLE  # onnxruntime adds integers up in double
        whole = whole if lowest <= total - slack and total + slack <= highest else None
    return _OPEN if whole is None else (whole - slack, whole + slack, False)
