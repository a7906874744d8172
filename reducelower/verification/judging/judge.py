"""Judges a result in which two sides differ: the specification leaves as much room as its witnesses differ.

A witness is another way to work out what the source gives: on inputs moved by last places, in exact arithmetic, in
double, as function bodies of the specification, in the reference evaluator. An element of the result is right if it is
near what a witness gives, or not much farther from it than the source itself. Witnesses are asked in order of cost,
until every element that differs is explained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from reducelower.numerics.measure import Array, widened
from reducelower.verification.findings import SEVERITY, SiteStatus
from reducelower.verification.judging.question import AS_FAR, NEAR_THE_END, Question, agree, finite, is_between

__all__ = ["judge"]

_JUMP = 1e-3  # share of the largest number by which no rounding moves a result
_MORE_PLACES = 16.0  # a result may round in more places than the inputs alone
_FEW = 0.01  # share of the elements that may be off by a step where values are rounded to steps
_EVERYDAY = 0.1, 4.0  # no form may lose range for inputs of these magnitudes, even if the caller chose it


@dataclass(frozen=True)
class _Explained:
    """What a witness explains: a mask of elements, their status, and what is said about them."""

    elements: Array
    status: SiteStatus
    words: str = ""


def judge(question: Question) -> tuple[SiteStatus, str]:
    """The worst status of the elements of an output, and a sentence about those that have it."""
    if not question.found.mismatch:
        return "equal", ""
    if question.sides.are_random(question.case.feeds, question.at, question.results[0]):
        return "not run", "it draws random numbers, different ones each time"
    if not question.are_numbers:
        return _as_a_whole(question)
    status: SiteStatus = "equal"
    reason = ""
    for witness in _WITNESSES:
        for found in witness(question):
            explained = question.open & found.elements
            if explained.any() and SEVERITY[found.status] > SEVERITY[status]:
                status, reason = found.status, question.told(explained, found.words)
            question.open &= ~explained
            if not question.open.any():
                return status, reason
    return _unexplained(question)


def _as_a_whole(question: Question) -> tuple[SiteStatus, str]:
    """Where shapes, types or texts differ: the reference evaluator may side with the result, or excuse it."""
    one, other = map(question.in_reference, (False, True))
    if one is not None and (agree(one, question.results[1]) or (other is not None and agree(one, other))):
        return "departs", f"the runtime diverges from the specification: {question.found.mismatch}"
    return "different", question.found.mismatch


def _unexplained(question: Question) -> tuple[SiteStatus, str]:
    """The status if elements are left: they are different, unless they only lose range, and on no everyday inputs."""
    is_everyday = _EVERYDAY[0] <= question.case.range[1] <= _EVERYDAY[1]
    if not question.is_lost[question.open].all() or (is_everyday and not question.case.is_special):
        return "different", question.found.mismatch
    body = question.given("as bodies")
    if body is not None and question.is_near(body, question.relative * np.abs(finite(body)))[question.open].all():
        return "loses range", question.told(question.open, "overflow or vanish, as the operator's definition does")
    if question.exact is not None:
        return "different", question.found.mismatch
    return "loses range", question.told(question.open, "overflow or vanish")


def _by_last_places(question: Question) -> Iterator[_Explained]:
    """The source on inputs of which the last places change.

    Rounding may move floats as far, and a bit farther. It does not explain integers that also differ in double, as on a
    tie, nor truth values.
    """
    if question.results[0].dtype == np.bool_:
        return
    if not question.is_float:
        one, other = (question.given("in double", of_result=side) for side in (False, True))
        if one is not None and other is not None and (one != other)[question.open].any():
            return
    reach: Array = np.zeros_like(question.distance)
    jumps = near = np.zeros_like(question.open)
    for value in question.sides.moved(question.case.feeds, question.at, of_result=question.is_swapped):
        if np.shape(value) != question.source.shape:
            continue
        moved = widened(value)
        reach = np.maximum(reach, question.off(moved))
        if question.is_float:
            most = _JUMP * question.largest
            jumps, reach = jumps | (reach > most), np.minimum(reach, most)
            near = near | question.is_near(moved, question.relative * np.abs(finite(moved)))
        # Where the source jumps, only what it gives on the other side is right as well.
        elements = (question.distance <= reach * (_MORE_PLACES if question.is_float else 1)) & (~jumps | near)
        left = question.open & ~elements
        if np.count_nonzero(left) <= _FEW * left.size and not (left & question.is_lost).any():
            elements |= question.distance <= reach.max(initial=0)
        yield _Explained(elements, "equal")


def _by_range(question: Question) -> Iterator[_Explained]:
    """The source, if it overflows somewhere in this output: the order of operations decides what else does."""
    if question.overflows:
        elements = question.is_near(question.source, 0, NEAR_THE_END)
        if question.is_extreme:
            elements |= ~np.isfinite(question.source) | ~np.isfinite(question.result)
        yield _Explained(elements, "overflow", "overflow in one order of operations and not in another")
    if question.case.is_special and not question.is_conversion and question.has_other_weights:
        elements = ~np.isfinite(question.source) | ~np.isfinite(question.result)
        yield _Explained(elements, "overflow", "are infinite with some weights and NaN with others")


def _by_exact_arithmetic(question: Question) -> Iterator[_Explained]:
    """The formula of a Reduce operator."""
    if question.exact is None:
        return
    low, high, takes_nan = question.exact
    slack = 4 * question.smallest + question.relative * np.abs(finite(low))
    source_is_right, is_right = (
        is_between(value, low - slack, high + slack, question.end) | (takes_nan & np.isnan(value))
        for value in (question.source, question.result)
    )
    better = "are right where the source is not"
    yield _Explained(source_is_right & is_right, "equal")
    if question.is_swapped:
        wide = question.given("in double", of_result=True)
        loses = ~np.isfinite(question.result)
        if wide is not None:  # and so computes the same, but for the digits that the form loses
            loses |= is_between(wide, low - slack, high + slack, question.end)
        yield _Explained(source_is_right & loses, "improved", better)
        yield _Explained(is_right, "overflow", "lose digits or range in the kernel of the operator")
    yield _Explained(is_right, "improved", better)


def _by_double(question: Question) -> Iterator[_Explained]:
    """The source in double.

    If neither model is known to replace the other, being better is a difference, except in the last places of the
    largest number, and on inputs at the ends of the range. Where nothing gives the source in double, as for GridSample,
    what replaces it tells in double whether all that is open is rounding.
    """
    if not question.is_float or question.exact is not None:
        return
    is_excused = question.overflows and question.is_at_the_ends
    if not (question.is_conversion or is_excused or question.are_last_places):
        return
    truth = question.given("in double")
    is_told = truth is not None and question.results[0].dtype != np.float64  # of doubles, no wider type tells all
    if question.is_conversion and not question.case.is_special and not is_told:
        elements = ~np.isfinite(question.source) & np.isfinite(question.result)
        yield _Explained(elements, "overflow", "are finite where the source is not")
    words = "lose digits or range in the source, too"
    if truth is None:
        other = question.given("in double", of_result=True) if question.are_last_places else None
        if other is not None:
            yield _Explained(question.is_near(other, question.last_places), "overflow", words)
        return
    off = question.off(truth)
    slack = question.relative * np.abs(finite(truth))
    is_near = question.is_near(truth, np.maximum(AS_FAR * off, slack), 1.0)
    if is_excused and question.is_extreme:  # an infinity inside of the result need not show
        other = question.given("in double", of_result=True)
        is_near |= False if other is None else is_between(other, truth - slack, truth + slack, question.end)
    yield _Explained(is_near | (~np.isfinite(question.source) & np.isfinite(truth)), "overflow", words)
    if question.are_last_places:  # the source may have some elements right by chance, beside others
        yield _Explained(question.is_near(truth, _MORE_PLACES * off.max(initial=0)), "overflow", words)


def _by_body(question: Question) -> Iterator[_Explained]:
    """The source as function bodies of the specification, in the same runtime and element type.

    What they overflow on is a loss of range, except on infinities, and on inputs so large that sums of a few overflow.
    """
    body = question.given("as bodies")
    if body is None and question.sides.pair.is_raised:  # the operator is the result
        body = question.given("as bodies", of_result=True)
    if body is not None:
        elements = question.is_close(body)
        may_be_lost = question.case.is_special or (question.is_extreme and question.exact is None)
        if question.is_float and not may_be_lost:
            elements &= np.isfinite(question.result)
        yield _Explained(elements, "overflow", "lose digits or range, as the specification's body of the operator does")


def _by_reference(question: Question) -> Iterator[_Explained]:
    """The reference evaluator, if it sides with the result, or gives the same for both sides."""
    words = "differ, since the runtime diverges from the specification"
    given = question.given("in the reference")
    if given is not None:
        status: SiteStatus = "overflow" if question.is_float and question.are_last_places else "departs"
        yield _Explained(question.is_close(given), status, words)
    one, other = map(question.in_reference, (False, True))
    if one is not None and other is not None and agree(one, other):
        yield _Explained(question.open.copy(), "departs", words)


_WITNESSES: Sequence[Callable[[Question], Iterator[_Explained]]] = (
    _by_last_places,
    _by_range,
    _by_exact_arithmetic,
    _by_double,
    _by_body,
    _by_reference,
)
"""Each yields what it explains, and nothing if it is no evidence; the cheapest first."""
