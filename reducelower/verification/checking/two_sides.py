"""Runs both sides of a region on one set of inputs after another, and has the results judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from onnx import ModelProto

from reducelower.verification.checking.seen import Seen, Setup, judge_case
from reducelower.verification.checking.tally import Tally, largest_kept
from reducelower.verification.feeding.filling import Case
from reducelower.verification.feeding.shapes import unfit
from reducelower.verification.inputs.declared import Dims, may_have
from reducelower.verification.judging.conditioning import Exactness
from reducelower.verification.judging.witness import Witness
from reducelower.verification.running.runtimes import Session, runtime_named
from reducelower.verification.running.source import CannotRunError, OutOfTimeError, Source

__all__ = ["run_both"]


def run_both(setup: Setup, before: ModelProto, after: ModelProto, runtimes: tuple[str, str]) -> Tally:
    """Run both sides, each in a runtime, on every set of inputs, and judge the results."""
    tally = Tally(runtime=" / ".join(dict.fromkeys(runtimes)))
    try:
        left = runtime_named(runtimes[0]).load(Source(before))
    except CannotRunError as error:
        return Tally(refused=[error.reason])
    try:
        right = runtime_named(runtimes[1]).load(Source(after))
    except CannotRunError as error:
        if error.unsupported or runtimes[0] != runtimes[1]:
            tally.refused.append(error.reason)
        else:
            tally.note("different", f"the replacement does not load: {error.reason}")
        return tally
    return _Run(setup, (before, after), left, right, runtimes, tally).run()


@dataclass
class _Run:
    """Both sides, loaded, and the results of the sets of inputs so far."""

    _setup: Setup
    _models: tuple[ModelProto, ModelProto]
    _left: Session
    _right: Session
    _runtimes: tuple[str, str]
    _tally: Tally
    _last: tuple[dict[str, Any], list[Any]] | None = None

    def run(self) -> Tally:
        """Run all sets of inputs until the sides differ on one; raise an OutOfTimeError once the time is over."""
        clock, witness, exactness = self._setup.clock, Witness(*self._models, *self._runtimes), Exactness(*self._models)
        operator = self._models[self._setup.pair.is_raised]
        for case in self._setup.sets(self._source_takes, self._both_take):
            clock.check()
            try:
                expected = self._source_gives(case.feeds)
            except OutOfTimeError:
                raise
            except CannotRunError as error:
                self._tally.refused.append(error.reason)
                continue
            try:
                results = self._right.run(case.feeds, clock.left)
            except OutOfTimeError:
                raise
            except CannotRunError as error:
                self._note_failure(error, case)
                continue
            if self._contradicts_model(case.feeds, expected):
                continue
            self._tally.cases += 1
            seen = Seen(self._setup, case, operator, self._left, expected, results, witness, exactness)
            judge_case(self._tally, seen)
            if self._tally.status == "different":
                break  # no other case makes it worse
        if self._tally.status == "loses range":
            self._tally.bound = self._bound()
        return self._tally

    def _bound(self) -> float:
        """The magnitude up to which nothing is lost; 0 if it is not known."""
        if self._tally.first_lost is None:
            return 0.0
        lost, case = self._tally.first_lost
        kept = max((top for top in self._tally.kept if top < lost), default=1.0)
        self._setup.clock.check()
        return largest_kept(self._left, self._right, case.feeds, lost, max(kept, 1.0))

    def _contradicts_model(self, feeds: Mapping[str, Any], expected: Sequence[Any]) -> bool:
        """Whether inputs of the declared shapes give another shape than the model states, due to sizes among them."""
        if not self._setup.limits.where or not all(
            may_have(dims, feeds[name].shape)
            for name, dims in self._declared.items()
            if isinstance(feeds.get(name), np.ndarray)
        ):
            return False
        return self._gives_another_shape(expected)

    @cached_property
    def _declared(self) -> dict[str, Dims | None]:
        pair = self._setup.pair
        return {item.name: pair.before.type_of(item.name)[1] if pair.is_carried else item.dims for item in pair.inputs}

    def _gives_another_shape(self, expected: Sequence[Any]) -> bool:
        """Whether the source gave another shape than the model states for its outputs."""
        pair = self._setup.pair
        stated = map(pair.before.stated_dims, pair.outputs)
        return not all(
            may_have(known, value.shape)
            for known, value in zip(stated, expected, strict=True)
            if isinstance(value, np.ndarray)
        )

    # Sets of inputs

    def _both_take(self, feeds: Mapping[str, Any]) -> bool:
        if not self._source_takes(feeds):
            return False
        try:
            return bool(self._right.run(feeds))
        except CannotRunError:
            return False

    def _source_takes(self, feeds: Mapping[str, Any]) -> bool:
        """Whether the source accepts these inputs; if not, the tally notes why."""
        self._setup.clock.check()  # many sizes may be tried before the first set of inputs
        objection = self._objection(feeds)
        if objection is not None:
            self._tally.refused.append(objection)
        return objection is None

    def _source_gives(self, feeds: Mapping[str, Any]) -> list[Any]:
        """The results of the source; those of `_source_takes`, if that just ran it on the same inputs."""
        known, results = self._last or ({}, [])
        if self._last and known.keys() == feeds.keys() and all(known[name] is feeds[name] for name in known):
            return results
        return self._left.run(feeds, self._setup.clock.left)

    def _objection(self, feeds: Mapping[str, Any]) -> str | None:
        if reason := unfit(feeds, *self._models):
            return reason
        try:
            results = self._source_gives(feeds)
            self._last = dict(feeds), results
            if any(item.dims is None for item in self._setup.pair.inputs) and self._gives_another_shape(results):
                return "of inputs of these ranks, it gives another shape than the model states"
            if self._runtimes == ("reference", "reference"):
                self._right.run(feeds)  # it takes sizes that do not fit each other, and broadcasts
        except CannotRunError as error:
            return error.reason
        return None

    # What fails

    def _note_failure(self, error: CannotRunError, case: Case) -> None:
        """Note that the replacement fails on inputs that the source took."""
        tally = self._tally
        if (
            error.unsupported or self._runtimes[0] != self._runtimes[1]
        ):  # another runtime may be stricter about what it is fed
            tally.refused.append(error.reason)
        elif not self._setup.limits.takes_any and any(np.size(value) == 0 for value in case.feeds.values()):
            tally.notes.setdefault(f"Of values without elements, the replacement fails: {error.reason}.")
        else:
            tally.cases += 1
            tally.note("different", f"the replacement fails where the source runs: {error.reason}", case)
