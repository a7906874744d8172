"""Runs of whole models, each in the first runtime that takes it, on inputs that the source accepts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from reducelower.verification.inputs.declared import check_making, input_specs
from reducelower.verification.running.conditions import conditions
from reducelower.verification.running.memory import TooLargeError
from reducelower.verification.running.runtimes import Session, runtime_named
from reducelower.verification.running.source import CannotRunError, OutOfTimeError, Source, with_outputs
from reducelower.verification.running.weights import value_of
from reducelower.verification.whole.accepted import Accepted

__all__ = ["Run", "SourceRuns", "run_result"]


@dataclass
class Run:
    """A model in a runtime: the sets of inputs, and what it gave for each.

    Attributes:
        instead: why it does not run in the runtime in which it should; empty if it does.
        inside: the inner values that are watched, by name, on the first set of inputs.
    """

    source: Source
    runtime: str
    cases: Sequence[dict[str, Any]] = ()
    results: Sequence[list[Any]] = ()
    inside: Mapping[str, Any] = field(default_factory=dict)
    instead: str = ""

    def load(self, inner: Sequence[str] = ()) -> Session:
        """The model once more, with inner values in place of its outputs; of large ones, one at a time is loaded."""
        source = replace(self.source, proto=with_outputs(self.source.proto, inner)) if inner else self.source
        return runtime_named(self.runtime).load(source)

    def given(self, at: int) -> dict[str, Any]:
        """A set of inputs, without those that the model does not have."""
        known = {value.name for value in self.source.proto.graph.input}
        return {name: value for name, value in self.cases[at].items() if name in known}

    def known(self, at: int) -> dict[str, Any]:
        """The values that this run gave for a set of inputs, and these, by name."""
        outputs = [value.name for value in self.source.proto.graph.output]
        inside = self.inside if at == 0 else {}
        return {**self.cases[at], **inside, **dict(zip(outputs, self.results[at], strict=True))}

    def values(self, at: int, names: Collection[str]) -> dict[str, Any]:
        """Values of the main graph by name, on a set of inputs; those that are not known yet come from another run.

        Raises:
            CannotRunError: the runtime does not give them.
        """
        graph, values = self.source.proto.graph, self.known(at)
        inner = [name for node in graph.node for name in node.output if name in names and name not in values]
        if inner:
            results = self.load(inner).run(self.given(at))
            values |= dict(zip(inner, results, strict=True))
        return constants(self.source, names) | {name: values[name] for name in names if name in values}


def constants(source: Source, names: Collection[str]) -> dict[str, Any]:
    """The initializers of these names."""
    found = {tensor.name: value_of(tensor) for tensor in source.proto.graph.initializer if tensor.name in names}
    return {name: value for name, value in found.items() if value is not None}


@dataclass
class SourceRuns:
    """Runs of the source on inputs that it accepts, each done once.

    Attributes:
        given: the inputs that the caller gives, by name; the others are made.
        takes_empty: whether no kernel of either model may object to inputs without elements.
    """

    source: Source
    given: Mapping[str, Any]
    takes_empty: bool = False
    _runs: dict[Sequence[str], tuple[Run | CannotRunError, list[str]]] = field(default_factory=dict)

    def seen(self, names: Sequence[str], watched: Collection[str]) -> dict[str, Any]:
        """Values of the main graph by name, on the first inputs that the source accepts, as far as they are known."""
        graph = self.source.proto.graph
        outputs = {value.name for value in graph.output}
        inner = [name for node in graph.node for name in node.output if name in watched and name not in outputs]
        found = constants(self.source, watched)
        with suppress(CannotRunError):
            run = self.run(names, [], inner)
            found |= run.known(0)
            found |= run.values(0, watched)
        return found

    def run(self, names: Sequence[str], notes: list[str], watched: Sequence[str] = ()) -> Run:
        """The run in the first of the runtimes that takes the source; if that is the first one, with `watched` values.

        Raises:
            CannotRunError: no runtime takes it.
        """
        if names not in self._runs:
            said: list[str] = []
            found: Run | CannotRunError
            try:
                found = self._new(names, said, watched)
            except CannotRunError as error:
                found = copy(error)  # without its traceback
            self._runs[names] = found, said
        run, said = self._runs[names]
        if isinstance(run, CannotRunError):
            raise copy(run)
        notes += said
        return run

    def _new(self, names: Sequence[str], notes: list[str], watched: Sequence[str]) -> Run:
        specs, skipped = input_specs(self.source.proto)
        left_out = [reason for name, reason in skipped.items() if name not in self.given]
        if left_out:
            raise CannotRunError("; ".join(left_out))
        check_making([spec for spec in specs if spec.name not in self.given])

        def taken(name: str, watched: Sequence[str] = ()) -> Run:
            source = self.source
            shown = (
                replace(source, proto=with_outputs(source.proto, watched, after_outputs=True)) if watched else source
            )
            session = runtime_named(name).load(shown)
            accepted = Accepted(session, source.proto, self.given, notes, self.takes_empty)
            accepted.find(specs)
            inside = dict(zip(watched, accepted.inside, strict=True))
            return Run(source, name, accepted.cases, accepted.results, inside)

        if watched:
            with suppress(CannotRunError):
                return taken(names[0], watched)
        return _first(names, taken)


def run_result(source: Source, names: Sequence[str], before: Run, notes: list[str]) -> Run:
    """Run the converted model on the source's inputs, in the first of the runtimes that takes it.

    If the budget ends after the first set of inputs, the run holds the sets that were done, so that a difference that
    they show is not lost.

    Raises:
        CannotRunError: none takes it; ``unsupported`` if that says nothing against the model.
        OutOfTimeError: the budget does not last for one set of inputs.
    """

    def taken(name: str) -> Run:
        run = Run(source, name, before.cases)
        session = run.load()
        results: list[list[Any]] = []
        for at in range(len(before.cases)):
            try:
                results.append(session.run(run.given(at)))
            except OutOfTimeError:
                if not results:
                    raise
                notes.append(conditions().clock.allowed(len(results)))
                break
        run.cases, run.results = before.cases[: len(results)], results
        return run

    return _first(names, taken, trusted=before.runtime)


def _first(names: Sequence[str], taken: Callable[[str], Run], trusted: str = "") -> Run:
    """The run in the first of the runtimes that takes a model.

    Where there is no memory for a run, another runtime takes no less. The `trusted` one, which runs the source, is
    right if it finds the result wrong.
    """
    reasons: list[str] = []
    for name in names:
        try:
            run = taken(name)
        except CannotRunError as error:
            if (name == trusted and not error.unsupported) or isinstance(error, TooLargeError):
                raise
            reasons.append(error.reason)
            continue
        return replace(run, instead=reasons[-1] if reasons else "")
    raise CannotRunError("; ".join(reasons), unsupported=True)
