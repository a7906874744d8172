"""Which of two results of a Reduce operator is right, by its formula in exact arithmetic."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from reducelower.numerics.measure import Array, element_type_of, is_float, lowest_and_highest, smallest_and_eps
from reducelower.numerics.tolerance import Tolerance, tolerance_for
from reducelower.numerics.truth import Specimen, intermediate, reduce_floats, reduce_integers
from reducelower.verification.findings import SiteStatus

__all__ = ["MOST", "judge_by_formula"]

_TRUNCATED = frozenset({"ReduceLogSum", "ReduceLogSumExp"})
_EXTREMES = frozenset({"ReduceMax", "ReduceMin"})
_EXACT = 2**53
_NUMBERS = 20_000  # to work out on one set of values

MOST = 100_000
"""Of more numbers than these, the exact result takes too long."""


@dataclass(frozen=True)
class _Exact:
    """The exact result of one group of numbers; None where the operator's page leaves it open."""

    value: Decimal | int | None
    without_nan: float | None
    order_decides: bool
    limits: tuple[float, float]
    slack: int

    @property
    def is_finite(self) -> bool:
        """Whether the exact result is a number."""
        return not isinstance(self.value, Decimal) or self.value.is_finite()

    def is_near(self, result: float, tolerance: Tolerance) -> bool:
        """Whether a result is right up to rounding."""
        smallest, largest = self.limits
        if self.value is None:
            return True
        if isinstance(self.value, int):
            return abs(int(result) - self.value) <= self.slack
        exact = self.value
        if exact.is_nan() or np.isnan(result):
            return exact.is_nan() and bool(np.isnan(result) or result == self.without_nan)
        bound = Decimal(4 * smallest)
        if exact.is_finite():
            bound = max(bound, abs(exact) * Decimal(tolerance.relative))
        if np.isinf(result):
            return bool((exact > 0) == (result > 0)) and abs(exact) + bound >= Decimal(largest)
        return exact.is_finite() and abs(Decimal(result) - exact) <= bound


def _exact(op_type: str, values: list[Any], dtype: np.dtype[Any], *, is_whole: bool) -> _Exact:
    if is_whole:
        lowest, highest = lowest_and_highest(dtype) if dtype != np.bool_ else (0, 1)
        whole = reduce_integers(op_type, values, lowest, highest)
        slack = int(op_type in _TRUNCATED)  # just below a whole number, it is cut to the next lower
        total = sum(values) if op_type == "ReduceMean" else whole or 0
        if op_type not in _EXTREMES and abs(total) > _EXACT:
            slack += (len(values) + 1) * abs(total) // _EXACT  # onnxruntime adds integers up in double
            whole = whole if lowest <= total - slack and total + slack <= highest else None
        return _Exact(whole, None, False, (0.0, 0.0), slack)
    smallest, _, largest = smallest_and_eps(dtype)
    least, most = intermediate(op_type, values)
    order_decides = most > Decimal(largest) or 0 < least < Decimal(smallest)
    value = reduce_floats(op_type, values)
    if value is not None or not values:
        return _Exact(value, None, order_decides, (smallest, largest), 0)
    # No page says whether a maximum or minimum of NaN and numbers is NaN.
    numbers = reduce_floats(op_type, [number for number in values if not np.isnan(number)])
    assert numbers is not None
    return _Exact(Decimal("NaN"), float(numbers), False, (smallest, largest), 0)


def judge_by_formula(
    op_type: str, specimen: Specimen, results: tuple[Array, Array], body: Any, elements: Array, *, is_raised: bool
) -> tuple[SiteStatus, str]:
    """The status of the elements in which a Reduce operator and its form differ, with a sentence.

    Args:
        op_type: the operator.
        specimen: what it is called with.
        results: those of the operator and of the form.
        body: the result of the operator's function body in its own element types; None if it is not known.
        elements: a mask of those that differ.
        is_raised: whether the operator replaces the form, which must then be right.
    """
    before, after = results
    tolerance, is_whole = tolerance_for(element_type_of(before)), not is_float(before)
    bodies = body.ravel() if isinstance(body, np.ndarray) and body.shape == before.shape else None
    counts: Counter[SiteStatus] = Counter()
    shown: dict[SiteStatus, str] = {}
    for at in np.flatnonzero(elements)[: max(_NUMBERS // max(specimen.length, 1), 1)]:
        exact = _exact(op_type, specimen.group(at), before.dtype, is_whole=is_whole)
        one, other = (item.ravel()[at].item() if is_whole else float(item.ravel()[at]) for item in (before, after))
        found = _standing(exact, one, other, None if bodies is None else float(bodies[at]), tolerance, is_raised)
        counts[found] += 1
        right = "open" if exact.value is None else f"{exact.value:.9g}"
        first, then = (str(item.ravel()[at]) for item in (results[::-1] if is_raised else results))
        shown.setdefault(found, f"{first} before, {then} after, {right} in exact arithmetic")
    worst = next((status for status in _WORDS if counts[status]), None)
    if worst is None:
        return "equal", ""
    return worst, f"{counts[worst]} of {before.size} values {_WORDS[worst]}: {shown[worst]}"


_WORDS: dict[SiteStatus, str] = {
    "different": "differ",
    "loses range": "overflow or vanish, as the operator's definition does",
    "overflow": "lose range, digits or NaN, as the source or the operator's definition does",
    "improved": "are right where the source is not",
}
"""What is said, the worst first."""


def _standing(
    exact: _Exact, operator: float, form: float, body: float | None, tolerance: Tolerance, is_raised: bool
) -> SiteStatus:
    is_right = exact.is_near(form, tolerance)
    operator_is_right = exact.is_near(operator, tolerance)
    if is_right:
        return "equal" if operator_is_right else "improved"
    is_lost = exact.is_finite and not (operator_is_right or np.isfinite(operator) or np.isfinite(form))
    pass_over_nan = exact.without_nan is not None and not (np.isnan(operator) or np.isnan(form))
    if exact.order_decides or is_lost or pass_over_nan:
        return "overflow"
    if is_raised and operator_is_right and not np.isfinite(form):
        return "improved"
    is_body = body is not None and (body == form or abs(body - form) <= tolerance.relative * abs(body))
    if not is_body:
        return "different"
    is_gone = np.isfinite(operator) and (not np.isfinite(form) or (form == 0 and operator != 0))
    return "loses range" if is_gone and operator_is_right and not is_raised else "overflow"
