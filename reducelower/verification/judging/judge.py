"""Judges one result of both sides by tolerance: equal, out of range on either side, or different."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reducelower.numerics.measure import (
    Array,
    Difference,
    is_float,
    measure,
    smallest_and_eps,
)
from reducelower.numerics.tolerance import Tolerance
from reducelower.verification.findings import SiteStatus
from reducelower.verification.judging.compare import unlike
from reducelower.verification.judging.conditioning import Move, explained

__all__ = ["NEAR_THE_END", "Judgement", "Sight", "are_extreme", "judge"]

NEAR_THE_END = 1 / 64
"""Share of the largest number of a type above which sums of a few values are out of range."""


@dataclass(frozen=True)
class Judgement:
    """One output of one run: the worst status of its values, with a sentence unless they are equal.

    The errors are over equal finite values; `elements` marks the values that differ.
    """

    status: SiteStatus
    reason: str
    max_ulp: int = 0
    max_absolute: float = 0.0
    max_relative: float = 0.0
    elements: Array | None = None


@dataclass(frozen=True)
class Sight:
    """What is known about a run besides its results.

    Attributes:
        is_special: whether NaN or infinities were fed, so that those in the results are no overflow.
        is_extreme: whether values close to the limit of the range were fed, so that overflows may differ.
        may_improve: whether the result may be finite where the source overflows: for a conversion it may; for any other
            two models that is a difference.
        moves: functions that find out how far rounding alone moves each element of the source's result: rounding of its
            inputs, then of inner values.
    """

    is_special: bool = False
    is_extreme: bool = False
    may_improve: bool = True
    moves: Sequence[Callable[[], Move | None]] = ()


NO_SIGHT = Sight()


def are_extreme(values: Iterable[Any], dtype: np.dtype[Any]) -> bool:
    """Whether inputs are close to the limit of a float type's range, and none of them is NaN or infinite."""
    wide = [item.astype(np.float64) for item in values if isinstance(item, np.ndarray) and is_float(item)]
    top = max((float(np.abs(item).max(initial=0)) for item in wide), default=0.0)
    return is_float(np.zeros(0, dtype)) and np.isfinite(top) and top > smallest_and_eps(dtype)[2] * NEAR_THE_END


def judge(before: Array, after: Array, tolerance: Tolerance, sight: Sight = NO_SIGHT) -> Judgement:
    """Compare by tolerance; set aside, and report, what the source itself cannot represent in its element type."""
    if reason := unlike(before, after):
        return Judgement("different", reason)
    found = measure(before, after, tolerance)
    aside = 0
    if is_float(before) and not sight.is_special:
        overflown = ~np.isfinite(before.astype(np.float64))
        is_better = np.isfinite(after.astype(np.float64))
        overflown &= (sight.is_extreme & ~is_better) | (is_better & sight.may_improve)
    else:
        overflown = np.zeros(before.shape, np.bool_)
    for move in (None, *sight.moves):  # each move takes more runs
        if not found.mismatch:
            break
        if move is not None:
            found = explained(before, after, tolerance, move())
        aside = 0 if found.elements is None else int((overflown & found.elements).sum())
        if aside and aside == found.outside:
            found = measure(np.where(overflown, after, before), after, tolerance, allowance=np.inf)
    if (
        found.elements is not None
        and is_float(before)
        and not sight.is_special
        and _overflow_alike(before, after, found, sight)
    ):
        sentence = f"{found.outside} values overflow in one order of additions and not in the other"
        return Judgement("overflow", sentence)
    figures = found.max_ulp, found.max_absolute, found.max_relative
    if found.mismatch:
        status: SiteStatus = "loses range" if found.loses_range else "different"
        return Judgement(status, found.mismatch, *figures, found.elements)
    if aside:
        return Judgement("overflow", f"{aside} values are finite where the source overflows or has no number", *figures)
    return Judgement("equal", "", *figures)


def _overflow_alike(before: Array, after: Array, found: Difference, sight: Sight) -> bool:
    """Whether the values that differ are close to the limit of the type, and both sides overflow elsewhere."""
    if not is_float(before):
        return False
    wide_before, wide_after = before.astype(np.float64), after.astype(np.float64)
    infinite = ~np.isfinite(wide_before), ~np.isfinite(wide_after)
    if not (infinite[0].any() and infinite[1].any()):
        return False
    _, eps, largest = smallest_and_eps(before.dtype)
    where = found.elements
    one = np.where(np.isfinite(wide_before), wide_before, wide_after)[where]
    if sight.is_extreme:
        with np.errstate(all="ignore"):
            is_rounding = np.abs(wide_before - wide_after) <= eps * largest
        return bool((infinite[0] | infinite[1] | is_rounding)[where].all())
    other = (infinite[0] != infinite[1])[where]
    return bool((other & (np.abs(one) > largest * NEAR_THE_END)).all())
