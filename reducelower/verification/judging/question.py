"""A result in which both sides may differ, and how near it is to what a witness gives."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from reducelower.numerics.measure import (
    Array,
    Difference,
    element_type_of,
    identical,
    is_float,
    is_lost,
    magnitude,
    measure,
    smallest_and_eps,
    widened,
)
from reducelower.numerics.tolerance import tolerance_for
from reducelower.verification.feeding.filling import Case
from reducelower.verification.judging.compare import unlike
from reducelower.verification.judging.exact import bounds, specimen_of
from reducelower.verification.judging.sides import Sides
from reducelower.verification.regions.pairs import SMALL_CONSTANT
from reducelower.verification.running.conditions import conditions

__all__ = ["AS_FAR", "NEAR_THE_END", "Question", "agree", "finite", "is_between"]

AS_FAR = 2.0
"""The error of a result against that of the source."""

NEAR_THE_END = 1 / 64
"""Share of the largest number of a type above which sums of a few values are out of range."""

_CLOSE = 1e-4  # share of a number by which another runtime may be off
_LAST_PLACES = 64  # ULP of the largest number, as in the tolerance of float and double


@dataclass
class Question:
    """One output of both sides on one set of inputs.

    Attributes:
        sides: what gave it, and the witnesses.
        case: the inputs.
        at: the number of the output.
        results: what the sides gave. If an operator replaces a form of it, the form is what has to be right: then the
            operator counts as the source.
    """

    sides: Sides
    case: Case
    at: int
    results: tuple[Array, Array]

    def __post_init__(self) -> None:
        before, after = self.results
        element_type, pair = element_type_of(before), self.sides.pair
        self.tolerance = conditions().tolerance(element_type)
        clause = unlike(before, after)
        self.found = Difference(clause) if clause else measure(before, after, self.tolerance)
        self.are_numbers = not clause and before.dtype.kind not in "OSUT"  # of one shape
        if not self.are_numbers or not self.found.mismatch:
            return
        # What differs, and no witness has explained so far.
        self.open = np.zeros(before.shape, np.bool_) if self.found.elements is None else self.found.elements.copy()
        self.is_conversion = bool(pair.site.rule)  # one side is known to replace the other, and may be better
        self.is_swapped = pair.is_raised and pair.is_reduction
        self.source, self.result = map(widened, self.results[::-1] if self.is_swapped else self.results)
        self.is_float = is_float(before)
        self.smallest, self.eps, self.end = smallest_and_eps(before.dtype) if self.is_float else (0.0, 0.0, np.inf)
        self.relative = tolerance_for(element_type).relative

    @property
    def is_extreme(self) -> bool:
        """Whether numbers close to the limit of the range were fed, so that overflows may differ."""
        return not self.case.is_special and self.case.range[1] > self.end * NEAR_THE_END

    @property
    def is_at_the_ends(self) -> bool:
        """Whether numbers were fed of which the square overflows, or one divided by them."""
        least, most = self.case.range
        return most > self.end**0.5 or 0 < least * self.end < 1

    @cached_property
    def overflows(self) -> bool:
        """Whether the source overflows somewhere in this output, and exact arithmetic does not tell where it should.

        A kernel that saturates gives finite numbers there, of which double shows that they are out of range.
        """
        if not self.is_float or self.case.is_special or self.exact is not None:
            return False
        values = self.given("in double") if self.is_extreme and np.isfinite(self.source).all() else self.source
        return values is not None and not (np.abs(values) <= self.end).all()

    @property
    def has_other_weights(self) -> bool:
        """Whether each side holds weights that the other does not, as folded convolutions and merged adapters do.

        Infinities times weights of both signs give NaN, which one weight in their place does not.
        """
        one, other = (
            [value for value in held.values() if is_float(value) and value.size > SMALL_CONSTANT]
            for held in self.sides.pair.constants
        )
        return all(
            any(not any(identical(value, same) for same in there) for value in here)
            for here, there in ((one, other), (other, one))
        )

    @cached_property
    def largest(self) -> float:
        """The largest finite number that was fed, or that a side gave."""
        return max(self.case.range[1], magnitude(self.results))

    @cached_property
    def distance(self) -> Array:
        """How far apart the sides are; NaN where that is no number."""
        return _apart(self.source, self.result)

    @property
    def are_last_places(self) -> bool:
        """Whether all that is open is in the last places of the largest number: it is chance which side loses these."""
        return bool((self.distance[self.open] <= self.last_places).all())

    @property
    def last_places(self) -> float:
        """How much that is."""
        return _LAST_PLACES * self.eps * self.largest

    @cached_property
    def is_lost(self) -> Array:
        """Where the source is finite, and the result infinite, NaN, or zero by underflow."""
        return is_lost(self.source, self.result, self.results[0].dtype)

    @cached_property
    def exact(self) -> tuple[Array, Array, Array] | None:
        """The bounds between which exact arithmetic has a Reduce operator; None if it is none, or long."""
        pair, element_type = self.sides.pair, element_type_of(self.results[0])
        if not pair.is_reduction or conditions().has_own_tolerance(element_type):
            return None
        (node,) = self.sides.models[pair.is_raised].graph.node
        specimen = specimen_of(node, {**pair.constants[0], **self.case.feeds})
        return None if specimen is None else bounds(node.op_type, specimen, self.results[0], self.open)

    def given(self, way: str, *, of_result: bool = False) -> Any:
        """This output of a side in another way, widened; None if it is not known in the same shape."""
        value = self.sides.given(way, self.case.feeds, self.at, of_result=of_result != self.is_swapped)
        return None if value is None or value.shape != self.source.shape else widened(value)

    def in_reference(self, of_result: bool) -> Array | None:
        """This output of a side in the reference evaluator, of whatever type and shape."""
        return self.sides.given("in the reference", self.case.feeds, self.at, of_result=of_result)

    def is_near(self, value: Array, radius: Any, end: float = np.inf) -> Array:
        """Where the result is near a value; above a share of the largest number, infinity is near, too."""
        same = (self.result == value) | (np.isnan(self.result) & np.isnan(value))
        near: Array = same | is_between(self.result, value - radius, value + radius, self.end, end)
        return near

    def is_close(self, value: Array) -> Array:
        """Where the result is as close to what another runtime gives as that may be off, or as the source is."""
        size = np.abs(finite(value))
        off = np.maximum(_CLOSE * size, self.eps * size.max(initial=0))
        return self.is_near(value, np.maximum(np.minimum(AS_FAR * self.off(value), off), self.relative * size))

    def off(self, value: Array) -> Array:
        """How far the source is from a value; 0 where that is no number."""
        return finite(_apart(self.source, value))

    def told(self, elements: Array, words: str) -> str:
        """A sentence on some elements, with what both sides give for the first."""
        at = np.flatnonzero(elements)[0]
        before, after = (str(value.ravel()[at]) for value in self.results)
        return f"{np.count_nonzero(elements)} of {elements.size} values {words}: {before} before, {after} after"


def _apart(one: Array, other: Array) -> Array:
    with np.errstate(all="ignore"):
        distance: Array = np.abs(one - other)
    return distance


def finite(value: Array) -> Array:
    """The same numbers, and zeros in place of NaN and infinities."""
    result: Array = np.where(np.isfinite(value), value, 0)
    return result


def agree(one: Array, other: Array) -> bool:
    """Whether two results are the same within the tolerance of their type."""
    return not unlike(one, other) and not measure(one, other, tolerance_for(element_type_of(one))).mismatch


def is_between(value: Array, low: Array, high: Array, largest: float, end: float = 1.0) -> Array:
    """Where values are within bounds; an infinity also if a bound is beyond some share of the largest number."""
    bound = largest * end
    low = np.where(low >= largest, bound, np.where(low < -bound, -np.inf, low))
    high = np.where(high <= -largest, -bound, np.where(high > bound, np.inf, high))
    between: Array = (low <= value) & (value <= high)
    return between
