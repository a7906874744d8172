"""Errors in units in the last place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from typing import Any

import ml_dtypes
from onnx import TensorProto, helper

from reducelower.rulebook.bindings import largest_finite

__all__ = ["LIMITS", "distance_in_ulps", "distance_in_units", "smallest_subnormal", "ulp"]

LIMITS: dict[int, float] = {
    TensorProto.FLOAT16: 2.0,
    TensorProto.BFLOAT16: 4.0,
    TensorProto.FLOAT: 4.0,
    TensorProto.DOUBLE: 4.0,
}
"""The allowed error of a rule in ULP. For integers one unit, in the same sense."""


def ulp(magnitude: float, element_type: int) -> float:
    """The distance of neighbouring numbers of a float type at a finite magnitude, including subnormal ones."""
    info: Any = ml_dtypes.finfo(helper.tensor_dtype_to_np_dtype(element_type))  # type: ignore[no-untyped-call]
    return math.ldexp(1.0, max(math.frexp(magnitude)[1] - 1, int(info.minexp)) - int(info.nmant))


def smallest_subnormal(element_type: int) -> float:
    """The smallest positive number of a float type."""
    return ulp(0.0, element_type)


def distance_in_ulps(given: float, expected: Decimal, values: Sequence[float], element_type: int) -> float:
    """The error in ULP of the larger of result and largest finite input; infinite for a wrong kind of number."""
    largest, beyond, farthest = _ends(element_type)
    if math.isnan(given) or expected.is_nan():
        return 0.0 if math.isnan(given) and expected.is_nan() else math.inf
    if expected.is_infinite() or math.isinf(given):
        if given == float(expected):
            return 0.0
        # An infinity is right if the exact result is finite but beyond the type's range, or nearly so.
        right = not expected.is_infinite() and abs(expected) >= beyond and (given > 0) == (expected > 0)
        return 0.0 if right else math.inf
    if abs(expected) > farthest:
        return math.inf
    base = max([min(abs(float(expected)), largest), *(abs(value) for value in values if math.isfinite(value))])
    return float(abs(Decimal(given) - expected) / Decimal(ulp(base, element_type)))


@cache
def _ends(element_type: int) -> tuple[float, Decimal, Decimal]:
    """The largest number of a float type; from where on infinity is right; up to where a number is right."""
    largest = largest_finite(element_type)
    unit = ulp(largest, element_type)
    return largest, Decimal(largest) - Decimal(LIMITS[element_type] * unit), Decimal(largest) + Decimal(unit)


def distance_in_units(given: int, expected: int, values: Sequence[int]) -> float:
    """The error of an integer result in units, or in ULP of a double if those are larger.

    onnxruntime's own integer reductions sum in double (measured with 1.31.1: ReduceSum of int64 [2**53 + 1] is off by
    one), which is not the rule's fault.
    """
    base = max([abs(expected), *(abs(value) for value in values)])
    return abs(given - expected) / max(1.0, ulp(float(base), TensorProto.DOUBLE))
