"""How much two results may differ: a tolerance for each element type, with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["APART", "DEFAULT_TOLERANCES", "EXACT", "Tolerance", "tolerance_for"]


@dataclass(frozen=True)
class Tolerance:
    """Bounds within which numbers count as equal. A value passes if any one of the three bounds holds.

    Attributes:
        ulp: largest distance in units in the last place, for values that were rounded differently.
        relative: largest error relative to the element's own magnitude. An element near zero that is the difference of
            large ones may deviate more; how much shows when the source's inputs change in their last places
            (`reducelower.verification.judging`).
        absolute: largest error in the tensor's own units, for users who know the scale of their outputs.
        reason: why these bounds.
    """

    ulp: int = 0
    relative: float = 0.0
    absolute: float = 0.0
    reason: str = ""

    def __str__(self) -> str:
        bounds = [f"{self.ulp} ULP"] if self.ulp else []
        bounds += [f"{self.relative:g} of the value"] if self.relative else []
        bounds += [f"{self.absolute:g}"] if self.absolute else []
        return " or ".join(bounds) or "no difference at all"


APART = 8.0
"""Factor on tolerances across runtimes, whose approximations of exp, erf and tanh differ by a few ULP each."""

EXACT = Tolerance(reason="integers, bool and strings have no rounding: any difference is a difference")

DEFAULT_TOLERANCES: Mapping[str, Tolerance] = {
    "double": Tolerance(64, 2e-14, reason="64 ULP or about 90 eps of the value: reordered sums"),
    "float": Tolerance(64, 1e-5, reason="64 ULP or about 84 eps of the value: reordered sums"),
    "float16": Tolerance(4, 4e-3, reason="4 ULP or 4 eps of the value: kernels round once"),
    "bfloat16": Tolerance(4, 3.2e-2, reason="4 ULP or 4 eps of the value: kernels round once"),
}
"""Default tolerances by ONNX element type; types that are not listed are compared exactly."""


def tolerance_for(element_type: str, tolerances: Mapping[str, Tolerance] | None = None) -> Tolerance:
    """The tolerance for an element type: the caller's, else the default, else exact."""
    if tolerances and element_type in tolerances:
        return tolerances[element_type]
    return DEFAULT_TOLERANCES.get(element_type, EXACT)
