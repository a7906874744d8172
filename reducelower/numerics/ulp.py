"""Float formats, and errors in units in the last place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from onnx import TensorProto

__all__ = ["FORMATS", "LIMITS", "Format", "distance_in_ulps", "distance_in_units", "smallest_subnormal", "ulp"]


@dataclass(frozen=True)
class Format:
    """A binary floating-point format.

    Attributes:
        precision: significant bits, including the hidden one.
        exponent: exponent of the largest power of two; in IEEE 754 the smallest normal number has 1 - exponent.
        lower: exponent of the smallest power of two to scale by. It is above the smallest normal number by a margin, so
            that one less is not flushed to zero, and near enough to it for the square of the rest to be representable.
        summable: exponent of a power of two of which 2**32 can be summed; 0 if the format is too narrow for that.
    """

    precision: int
    exponent: int
    lower: int
    summable: int

    @property
    def lowest_exponent(self) -> int:
        """The exponent of the smallest normal number."""
        return 1 - self.exponent

    @property
    def largest(self) -> float:
        """The largest finite number."""
        return (2.0 - 2.0 ** (1 - self.precision)) * 2.0**self.exponent


FORMATS: dict[int, Format] = {
    TensorProto.FLOAT16: Format(precision=11, exponent=15, lower=-12, summable=0),
    TensorProto.BFLOAT16: Format(precision=8, exponent=127, lower=-120, summable=64),
    TensorProto.FLOAT: Format(precision=24, exponent=127, lower=-120, summable=64),
    TensorProto.DOUBLE: Format(precision=53, exponent=1023, lower=-1000, summable=512),
}

LIMITS: dict[int, float] = {
    TensorProto.FLOAT16: 2.0,
    TensorProto.BFLOAT16: 4.0,
    TensorProto.FLOAT: 4.0,
    TensorProto.DOUBLE: 4.0,
}
"""The allowed error of a rule in ULP. For integers one unit, in the same sense."""


def ulp(magnitude: float, element_type: int) -> float:
    """The distance of neighbouring numbers of a float type at a finite magnitude, including subnormal ones."""
    exponent = max(math.frexp(magnitude)[1] - 1, FORMATS[element_type].lowest_exponent)
    return math.ldexp(1.0, exponent - FORMATS[element_type].precision + 1)


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
    largest = FORMATS[element_type].largest
    unit = ulp(largest, element_type)
    return largest, Decimal(largest) - Decimal(LIMITS[element_type] * unit), Decimal(largest) + Decimal(unit)


def distance_in_units(given: int, expected: int, values: Sequence[int]) -> float:
    """The error of an integer result in units, or in ULP of a double if those are larger.

    onnxruntime's own integer reductions sum in double (measured with 1.31.1: ReduceSum of int64 [2**53 + 1] is off by
    one), which is not the rule's fault.
    """
    base = max([abs(expected), *(abs(value) for value in values)])
    return abs(given - expected) / max(1.0, ulp(float(base), TensorProto.DOUBLE))
