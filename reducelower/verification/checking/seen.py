"""Judges the results of the two sides of a region on one set of inputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from onnx import ModelProto

from reducelower.model.attributes import value_of
from reducelower.model.graph import walk
from reducelower.numerics.measure import Array, element_type_of, identical, is_float, smallest_and_eps
from reducelower.numerics.tolerance import Tolerance, tolerance_for
from reducelower.numerics.truth import Specimen
from reducelower.verification.checking.tally import Tally, magnitude
from reducelower.verification.feeding.filling import Case
from reducelower.verification.feeding.held import held_in
from reducelower.verification.feeding.limits import Limits
from reducelower.verification.feeding.sets import Sets
from reducelower.verification.findings import DISTANCES, SiteStatus
from reducelower.verification.judging.compare import compare_outputs, is_slight
from reducelower.verification.judging.conditioning import DRAWS, Exactness, Move, moved_by
from reducelower.verification.judging.formula import MOST, judge_by_formula
from reducelower.verification.judging.judge import Judgement, Sight, are_extreme, judge
from reducelower.verification.judging.witness import Differing, Witness
from reducelower.verification.operators import BY_PROBABILITY, RANDOM, of_kind
from reducelower.verification.regions.pairs import Pair
from reducelower.verification.running.clock import Clock
from reducelower.verification.running.runtimes import Session

__all__ = ["Seen", "Setup", "judge_case"]

_ORDINARY = 100.0  # magnitude of inputs
_EVERYDAY = 0.1, 4.0  # no form may lose range for inputs of these magnitudes, even if the caller chose it
_LAST_PLACES = 64  # ULP of the largest number, as in the tolerance of float and double
_MOST_BY_ROUNDING = 1e-3  # of the largest magnitude
_REDRAWN = 32  # runs until random numbers give another result: with one element, most draws give the same
_MIXING, _WAVES = of_kind("mixing"), of_kind("adding waves up")


@dataclass(frozen=True)
class Setup:
    """What all runs of one check share."""

    pair: Pair
    tolerances: Mapping[str, Tolerance] | None
    sets: Sets
    clock: Clock

    @property
    def limits(self) -> Limits:
        """What may be fed."""
        return self.sets.limits


@dataclass(frozen=True)
class Seen:
    """One run of both sides, and the witnesses to ask if they differ; `operator` is the side that needs no proof."""

    setup: Setup
    case: Case
    operator: ModelProto
    source: Session
    expected: Sequence[Any]
    results: Sequence[Any]
    witness: Witness
    exactness: Exactness

    @property
    def pair(self) -> Pair:
        """What was run."""
        return self.setup.pair

    @cached_property
    def magnitude(self) -> float:
        """The largest finite magnitude that was fed."""
        return magnitude(self.case.feeds.values())

    def formula(self, element_type: str) -> Specimen | None:
        """What a Reduce operator is called with; None for others, long sums, and if the caller set a tolerance."""
        if not self.pair.has_formula or element_type in (self.setup.tolerances or {}):
            return None
        (node,) = self.operator.graph.node
        values = {**self.pair.constants[0], **self.case.feeds}
        data, axes = (values.get(name) for name in (*node.input, "")[:2])
        if axes is None:
            axes = value_of(node, "axes")
        chosen = None if axes is None else tuple(np.ravel(axes).tolist())
        keeps, noop = bool(value_of(node, "keepdims", 1)), bool(value_of(node, "noop_with_empty_axes", 0))
        specimen = None if data is None else Specimen(data, chosen, keeps, noop)
        return specimen if specimen is not None and specimen.length <= MOST else None

    def moves(self, at: int) -> tuple[Callable[[], Move | None], ...]:
        """Ways to find out how far rounding moves one result, the cheapest first."""
        if not is_float(self.expected[at]) and self._rounds_nothing:
            return ()  # then a tie has one right answer
        moved = [partial(self._when_inputs_do, at, draws) for draws in (1, DRAWS)]
        return *moved, partial(self._mixed, self.expected[at])

    @cached_property
    def _rounds_nothing(self) -> bool:
        return self.exactness.holds(self.case.feeds)

    @cached_property
    def _moved(self) -> list[list[Array | None]]:
        return []

    def _when_inputs_do(self, at: int, draws: int) -> Move | None:
        self.setup.clock.check()
        for draw in range(len(self._moved), draws):
            self._moved.append(moved_by(self.source, self.case.feeds, self.expected, self.setup.sets.seed, draw))
        known = [found for each in self._moved for found in each[at : at + 1] if found is not None]
        if not known:
            return None
        reach, value = np.maximum.reduce(known), self.expected[at]
        if is_float(value):
            # Rounding is small against the inputs or the result. A larger move is a jump, as of an If.
            finite = np.abs(np.where(np.isfinite(value), value, 0).astype(np.float64))
            reach = np.minimum(reach, _MOST_BY_ROUNDING * max(self.magnitude, float(finite.max(initial=0))))
        return Move(reach)

    def _mixed(self, value: Array) -> Move | None:
        """The effect of rounded weights in interpolation and Fourier transforms, which changed inputs may not show.

        If a coordinate falls on a value, its neighbours have weight zero. If all values along a wave are the same, the
        wave adds up to zero. Rounded weights then leave as many last places as values are added up.
        """
        if not is_float(value) or not _mixes(self.pair):
            return None
        _, eps, _ = smallest_and_eps(value.dtype)
        size = self.magnitude or magnitude(held_in(self.pair))
        count = max(value.shape, default=1) if _mixes(self.pair, _WAVES) else 1
        return Move(np.full(value.shape, count * eps * size), flipped=0.0)


def judge_case(tally: Tally, seen: Seen) -> None:
    """Compare every result of both sides on one set of inputs, and note the outcome.

    If they differ, the runtime may be at fault, or the source may lose what the replacement keeps (`Witness`). Finding
    out takes more runs, and raises an OutOfTimeError if there is no time for them.
    """
    pair, case, tolerances = seen.pair, seen.case, seen.setup.tolerances
    for at, (before, after) in enumerate(zip(seen.expected, seen.results, strict=True)):
        if not (isinstance(before, np.ndarray) and isinstance(after, np.ndarray)):
            _judge_parts(tally, seen, before, after)
            continue
        tally.values += before.size
        if identical(before, after):
            tally.kept.append(seen.magnitude)
            continue
        tolerance = tolerance_for(element_type_of(before), tolerances)
        is_extreme = are_extreme(case.feeds.values(), before.dtype)
        specimen = seen.formula(element_type_of(before))
        # The formula tells what is out of range.
        sight = Sight(case.is_special or specimen is not None, is_extreme, bool(pair.site.rule), seen.moves(at))
        found = judge(before, after, tolerance, sight)
        if found.status in ("different", "loses range"):
            seen.setup.clock.check()
        status, reason = _whose_doing(seen, at, found, specimen)
        is_everyday = _EVERYDAY[0] <= seen.magnitude <= _EVERYDAY[1]
        if status == "loses range" and is_everyday and not case.is_special:
            status = "different"
        tally.is_defined_so &= status != "loses range" or pair.has_formula
        if status in ("different", "loses range") and tally.runtime == "reference" and is_slight(before, after):
            status, reason = "not run", f"onnx's evaluator, in which it ran, may be off by as much: {reason}"
        if status != "equal" and tolerance.absolute and seen.magnitude > _ORDINARY:
            continue  # an absolute bound is meant for the scale of the caller's outputs
        if status != "equal" and is_extreme and element_type_of(before) in (tolerances or {}):
            continue  # with such a tolerance, one side may overflow
        tally.note(status, reason, case)
        if status == "loses range":
            tally.lose(seen.magnitude, case)
        else:
            tally.kept.append(seen.magnitude)
        for name in DISTANCES:
            setattr(tally, name, max(getattr(tally, name), getattr(found, name)))
        if found.max_ulp:
            tally.limits[str(tolerance)] = None


def _whose_doing(seen: Seen, at: int, found: Judgement, specimen: Specimen | None) -> tuple[SiteStatus, str]:
    """The status of one result, after asking whether the runtime or the source itself explains a difference.

    Args:
        seen: the run.
        at: the number of the result.
        found: how both sides compare.
        specimen: what a Reduce operator was called with, if there is a formula.
    """
    status, reason, case, pair = found.status, found.reason, seen.case, seen.pair
    before, after = seen.expected[at], seen.results[at]
    if status != "equal" and _is_random(seen, at):  # also where a drawn factor takes one side out of range
        return "not run", "it draws random numbers, different ones each time"
    if status == "loses range" and _is_carried(pair):
        return "departs", f"the runtime computes the newer version of the operator otherwise: {reason}"
    if status not in ("different", "loses range"):
        return status, reason
    witness, differing = seen.witness, Differing(case.feeds, before, after, at, found.elements)
    if specimen is not None and found.elements is not None:
        results = (after, before) if pair.is_raised else (before, after)
        body = witness.as_body(differing, of_result=pair.is_raised)
        return judge_by_formula(pair.node.op_type, specimen, results, body, found.elements, is_raised=pair.is_raised)
    is_conversion = bool(pair.site.rule)
    if found.elements is not None and (is_conversion or not _gained(before, after, found.elements).any()):
        of_last_places = _is_of_last_places(before, after, found.elements, seen.magnitude)
        loss = ""
        if is_conversion or of_last_places:
            loss = witness.own_loss(differing, found.elements, of_last_places=of_last_places)
        loss = loss or witness.as_specified(differing, found.elements)
        if loss:
            return "overflow", loss
    if found.elements is not None and (loss := witness.overflow_alone(differing, found.elements)):
        return "overflow", loss
    departure = witness.departure(differing)
    if departure and found.elements is not None and are_extreme(case.feeds.values(), before.dtype):
        gained = _gained(before, after, found.elements)
        if gained.all():  # the evaluator computes some operators in double inside
            return "overflow", f"{gained.size} values are finite where the source overflows or has no number"
    return ("departs", departure) if departure else (status, reason)


def _gained(before: Array, after: Array, elements: Array) -> Array:
    """For each value that differs, whether it is finite after, but not before."""
    gained: Array = (np.isfinite(after) & ~np.isfinite(before) if is_float(before) else elements & False)[elements]
    return gained


def _is_of_last_places(before: Array, after: Array, elements: Array, fed: float) -> bool:
    """Whether finite values differ only in the last places of the largest input or result.

    It is chance which of two models loses these. A larger loss counts as a difference, except for a conversion, where
    one side is known to replace the other.
    """
    if not is_float(before):
        return False
    one, other = (value.astype(np.float64)[elements] for value in (before, after))
    size = max(fed, magnitude([before]), magnitude([after]))
    _, eps, _ = smallest_and_eps(before.dtype)
    with np.errstate(all="ignore"):
        apart = np.abs(one - other)
    return bool((apart[np.isfinite(apart)] <= _LAST_PLACES * eps * size).all())


def _mixes(pair: Pair, kind: Collection[str] = _MIXING) -> bool:
    return any(node.op_type in kind for node in walk(pair.nodes))


def _is_carried(pair: Pair) -> bool:
    """Whether the operator stayed, so that only the runtime's newer version of it can lose anything."""
    if len(pair.nodes) != 1 or len(pair.replacement) != 1 or pair.node.op_type != pair.replacement[0].op_type:
        return False
    given = zip(pair.node.input, pair.replacement[0].input, strict=False)
    constants = [(pair.constants[0].get(one), pair.constants[1].get(other)) for one, other in given]
    if not all(
        one is other or (one is not None and other is not None and identical(one, other)) for one, other in constants
    ):
        return False
    return pair.before.opsets != pair.after.opsets or pair.is_carried


def _is_random(seen: Seen, at: int) -> bool:
    """Whether the source draws random numbers, so that it gives different results for the same inputs.

    Operators that draw by probability may give the same each time on inputs that are no probabilities, so they always
    count as random.
    """
    kinds = {node.op_type for node in walk(seen.pair.nodes)}
    if not kinds.isdisjoint(BY_PROBABILITY):
        return True
    if kinds.isdisjoint(RANDOM):
        return False
    again = (seen.source.run(seen.case.feeds, None)[at] for _ in range(_REDRAWN))
    return not all(identical(value, seen.expected[at]) for value in again)


def _judge_parts(tally: Tally, seen: Seen, before: Any, after: Any) -> None:
    """Compare sequences, maps and optional values part by part."""
    for item in compare_outputs(("value",), [before], [after], runtime="", tolerances=seen.setup.tolerances):
        if item.verdict == "different":
            tally.note("different", f"{item.name}: {item.reason}", seen.case)
        tally.values += int(np.prod(item.shape_before, dtype=np.int64))
