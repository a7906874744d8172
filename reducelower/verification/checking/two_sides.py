"""Runs both sides of a region on one set of inputs after another, and has the results judged."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto

from reducelower.numerics.measure import element_type_of, identical, is_float, smallest_and_eps
from reducelower.verification.checking.tally import Tally
from reducelower.verification.feeding.filling import Case
from reducelower.verification.feeding.sets import Sets
from reducelower.verification.feeding.shapes import unfit
from reducelower.verification.inputs.declared import are_stated
from reducelower.verification.judging.compare import compare_outputs, unlike
from reducelower.verification.judging.judge import judge
from reducelower.verification.judging.question import NEAR_THE_END, Question
from reducelower.verification.judging.sides import Sides
from reducelower.verification.regions.pairs import Pair
from reducelower.verification.running.conditions import conditions
from reducelower.verification.running.runtimes import runtime_named, try_run
from reducelower.verification.running.source import CannotRunError, Source

__all__ = ["run_both"]

_ORDINARY = 100.0  # magnitude of inputs
_BEYOND = 2.0  # times the bound, of values that are judged once more
_WIDE = 1e30  # the largest number of a type that no activation comes close to
_HALVINGS = 24  # the range of double has 2048 octaves, and the bound is exact to a thousandth of one


def run_both(
    pair: Pair,
    models: tuple[ModelProto, ModelProto],
    runtimes: tuple[str, str],
    sets: Sets,
) -> Tally:
    """Run both sides of a region, each in a runtime, on every set of inputs, and judge the results."""
    tally = Tally(runtime=" / ".join(dict.fromkeys(runtimes)))
    try:
        left = runtime_named(runtimes[0]).load(Source(models[0]))
    except CannotRunError as error:
        return Tally(refused=[error.reason])
    try:
        right = runtime_named(runtimes[1]).load(Source(models[1]))
    except CannotRunError as error:
        if error.unsupported or runtimes[0] != runtimes[1]:
            tally.refused.append(error.reason)
        else:
            tally.note("different", f"the replacement does not load: {error.reason}")
        return tally
    sides = Sides(pair, models, runtimes, (left, right))
    return _Run(sides, sets, tally).run()


@dataclass
class _Run:
    """Both sides, and the results of the sets of inputs so far."""

    _sides: Sides
    _sets: Sets
    _tally: Tally
    _losing: Case | None = None
    _last: tuple[dict[str, Any], list[Any]] | None = None

    def run(self) -> Tally:
        """Run all sets of inputs until the sides differ on one."""
        tally = self._tally
        for case in self._sets(self._source_takes, self._both_take):
            try:
                expected = self._source_gives(case.feeds)
            except CannotRunError as error:
                tally.refused.append(error.reason)
                continue
            try:
                results = self._sides.sessions[1].run(case.feeds)
            except CannotRunError as error:
                self._note_failure(error, case)
                continue
            if self._contradicts_model(case.feeds, expected):
                continue
            tally.cases += 1
            for at, (before, after) in enumerate(zip(expected, results, strict=True)):
                self._compare(case, at, before, after)
            if tally.status == "different":
                break  # no other case makes it worse
        if tally.status == "loses range" and self._losing is not None:
            tally.bound = self._bound(self._losing)
            self._judge_beyond(tally.bound, self._losing)
            if tally.status == "loses range" and self._is_at_the_end(tally.bound, self._losing):
                tally.status = "overflow"
        return tally

    def _compare(self, case: Case, at: int, before: Any, after: Any) -> None:
        """Compare one output of both sides, and note the outcome."""
        if not (isinstance(before, np.ndarray) and isinstance(after, np.ndarray)):
            self._compare_parts(case, before, after)
            return
        self._tally.values += before.size
        if identical(before, after):
            return
        question = Question(self._sides, case, at, (before, after))
        status, reason = judge(question)
        if status == "departs" and self._are_empty(case):
            self._tally.notes.setdefault(f"Of values without elements: {reason}.")
        elif status == "equal" or not self._is_beyond_tolerance(question):
            self._tally.note(status, reason, case)
            self._tally.measured(question.found, str(question.tolerance))
            if status == "loses range" and not case.is_special:
                self._losing = self._losing or case

    def _is_beyond_tolerance(self, question: Question) -> bool:
        """Whether the caller's tolerance says nothing about such inputs: it is meant for the scale of the outputs."""
        is_of_caller = conditions().has_own_tolerance(element_type_of(question.results[0]))
        is_large = question.tolerance.absolute > 0 and question.case.range[1] > _ORDINARY
        return is_of_caller and (is_large or (question.are_numbers and question.is_extreme))

    def _compare_parts(self, case: Case, before: Any, after: Any) -> None:
        """Compare sequences, maps and optional values part by part."""
        for item in compare_outputs(("value",), [before], [after], runtime=""):
            if item.verdict == "different":
                self._tally.note("different", f"{item.name}: {item.reason}", case)
            self._tally.values += int(np.prod(item.shape_before, dtype=np.int64))

    def _bound(self, case: Case) -> float:
        """The largest magnitude of inputs, to a thousandth, at which nothing is lost; 0 if it is not known.

        The absolute values of a case that loses something are scaled.
        """
        low, high = 1.0, case.range[1]
        try:
            if high <= low or not self._loses(case, 1.0) or self._loses(case, low / high):
                return 0.0
            top = high
            for _ in range(_HALVINGS):
                middle = math.sqrt(low) * math.sqrt(high)
                low, high = (low, middle) if self._loses(case, middle / top) else (middle, high)
        except CannotRunError:
            return 0.0
        return low

    def _is_at_the_end(self, bound: float, case: Case) -> bool:
        """Whether only numbers close to the limit of a wide type are lost, and neither side replaces the other.

        Where between there and the limit sums overflow, the order of operations decides.
        """
        floats = (value for value in case.feeds.values() if isinstance(value, np.ndarray) and is_float(value))
        end = min((smallest_and_eps(value.dtype)[2] for value in floats), default=0.0)
        return end > _WIDE and bound > end * NEAR_THE_END and not self._sides.pair.site.rule

    def _judge_beyond(self, bound: float, case: Case) -> None:
        """Judge values not far above the bound, since the definition of the operator may only lose larger ones."""
        if not bound:
            return
        factor = _BEYOND * bound / case.range[1]
        beyond = Case(case.label, {name: _scaled(value, factor) for name, value in case.feeds.items()})
        with suppress(CannotRunError):
            for at, (before, after) in enumerate(zip(*self._results(beyond.feeds), strict=True)):
                self._compare(beyond, at, before, after)

    def _results(self, feeds: Mapping[str, Any]) -> Iterator[list[Any]]:
        """What both sides give."""
        return (session.run(feeds) for session in self._sides.sessions)

    def _loses(self, case: Case, factor: float) -> bool:
        """Whether something that is finite before is not finite after, on absolute values that are scaled."""
        scaled = {name: _scaled(value, factor) for name, value in case.feeds.items()}
        results = zip(*self._results(scaled), strict=True)
        floats = (pair for pair in results if is_float(pair[0]) and not unlike(*pair))
        return any(bool((np.isfinite(before) & ~np.isfinite(after)).any()) for before, after in floats)

    def _contradicts_model(self, feeds: Mapping[str, Any], expected: Sequence[Any]) -> bool:
        """Whether inputs of the declared shapes give another shape than the model states, due to sizes among them."""
        pair = self._sides.pair
        # The inputs of a rewrite have free sizes, of which the model says nothing.
        if not self._sets.limits.where or not self._gives_another_shape(expected):
            return False
        declared = (pair.before.type_of(pair.real(name))[1] for name in pair.input_names)
        return are_stated(declared, (feeds[name] for name in pair.input_names))

    def _gives_another_shape(self, expected: Sequence[Any]) -> bool:
        """Whether the source gave another shape than the model states for its outputs."""
        pair = self._sides.pair
        stated = (pair.before.graph.stated_type(pair.real(name)).sizes for name in pair.outputs)
        return not are_stated(stated, expected)

    # Sets of inputs

    def _both_take(self, feeds: Mapping[str, Any]) -> bool:
        return self._source_takes(feeds) and try_run(self._sides.sessions[1], feeds) is not None

    def _source_takes(self, feeds: Mapping[str, Any]) -> bool:
        """Whether the source accepts these inputs; if not, the tally notes why."""
        objection = self._objection(feeds)
        if objection is not None:
            self._tally.refused.append(objection)
        return objection is None

    def _source_gives(self, feeds: Mapping[str, Any]) -> list[Any]:
        """The results of the source; those of `_source_takes`, if that just ran it on the same inputs."""
        known, results = self._last or ({}, [])
        if self._last and known.keys() == feeds.keys() and all(known[name] is feeds[name] for name in known):
            return results
        return self._sides.sessions[0].run(feeds)

    def _objection(self, feeds: Mapping[str, Any]) -> str | None:
        if reason := unfit(feeds, *self._sides.models):
            return reason
        try:
            results = self._source_gives(feeds)
            self._last = dict(feeds), results
            if any(item.dims is None for item in self._sides.pair.inputs) and self._gives_another_shape(results):
                return "of inputs of these ranks, it gives another shape than the model states"
            if self._sides.runtimes == ("reference", "reference"):
                self._sides.sessions[1].run(feeds)  # it takes sizes that do not fit each other, and broadcasts
        except CannotRunError as error:
            return error.reason
        return None

    # What fails

    def _note_failure(self, error: CannotRunError, case: Case) -> None:
        """Note that the replacement fails on inputs that the source took."""
        tally = self._tally
        if (
            error.unsupported or self._sides.runtimes[0] != self._sides.runtimes[1]
        ):  # another runtime may be stricter about what it is fed
            tally.refused.append(error.reason)
        elif self._are_empty(case):
            tally.notes.setdefault(f"Of values without elements, the replacement fails: {error.reason}.")
        else:
            tally.cases += 1
            tally.note("different", f"the replacement fails where the source runs: {error.reason}", case)

    def _are_empty(self, case: Case) -> bool:
        """Whether inputs have no elements, and not every operator here gives something for such inputs by its page."""
        return not self._sets.limits.takes_any and any(np.size(value) == 0 for value in case.feeds.values())


def _scaled(value: Any, factor: float) -> Any:
    if not isinstance(value, np.ndarray) or not is_float(value):
        return value
    return (np.abs(value.astype(np.float64)) * factor).astype(value.dtype)
