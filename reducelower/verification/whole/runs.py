"""Runs whole models, each in the first runtime that takes it, on inputs that the source accepts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import ModelProto, numpy_helper

from reducelower.verification.inputs.made import check_making, input_specs
from reducelower.verification.running.clock import Clock
from reducelower.verification.running.memory import TooLargeError
from reducelower.verification.running.runtimes import Session, runtime_named
from reducelower.verification.running.source import CannotRunError, OutOfTimeError, Source, with_outputs
from reducelower.verification.running.weights import held_array, is_held
from reducelower.verification.whole.accepted import Accepted, Request, Run

__all__ = ["Request", "Run", "inner_values", "run_result", "run_source", "values_of"]


def run_source(
    source: Source,
    names: Sequence[str],
    request: Request,
    clock: Clock,
    notes: list[str],
    watched: Sequence[str] = (),
) -> Run:
    """Run the source in the first of the runtimes that takes it, on inputs that it accepts.

    The same session gives the inner values that are `watched`.

    Raises:
        CannotRunError: no runtime takes it.
    """
    shown = source
    if watched:
        proto = with_outputs(source.proto, watched, after_outputs=True)
        shown = replace(source, proto=proto)
    specs, skipped = input_specs(source.proto)
    left_out = [reason for name, reason in skipped.items() if name not in request.given]
    if left_out:
        raise CannotRunError("; ".join(left_out))
    check_making([spec for spec in specs if spec.name not in request.given], request.dims)
    reasons: list[str] = []
    for name in names:
        clock.check()
        try:
            run = Run(name, runtime_named(name).load(shown), inside=dict.fromkeys(watched))
            Accepted(run, source.proto, specs, request, clock, notes).find()
        except TooLargeError:
            raise  # another runtime takes no less
        except CannotRunError as error:
            reasons.append(error.reason)
            continue
        if reasons:
            notes.append(f"The source model was run with the {name} evaluator: {reasons[-1]}.")
        return run
    raise (OutOfTimeError if clock.over else CannotRunError)("; ".join(reasons))


def run_result(source: Source, names: Sequence[str], before: Run, clock: Clock, notes: list[str]) -> Run:
    """Run the converted model on the source's inputs, in the first of the runtimes that takes it.

    If the budget ends after the first set of inputs, the run holds the sets that were done, so that a difference that
    they show is not lost.

    Raises:
        CannotRunError: none takes it, or the budget does not last for one set of inputs; ``unsupported`` if that says
            nothing against the model.
    """
    reasons: list[str] = []
    accepted = {value.name for value in source.proto.graph.input}
    for name in names:
        clock.check()
        try:
            run = Run(name, runtime_named(name).load(source))
            feeds = [{key: value for key, value in case.items() if key in accepted} for case in before.cases]
            run.results += _results(run.session, feeds, clock)
            run.cases += before.cases[: len(run.results)]
        except CannotRunError as error:
            # A runtime that runs the source and finds the result wrong is right, and no other runtime is asked.
            if not error.unsupported and before.runtime == name and not clock.over:
                raise
            reasons.append(error.reason)
            continue
        if reasons and before.runtime != name:
            notes.append(f"The converted model was run with the {name} evaluator: {reasons[-1]}.")
        if len(run.cases) < len(before.cases):
            notes.append(clock.allowed(len(run.cases)))
        return run
    raise CannotRunError("; ".join(reasons), unsupported=True)


def _results(session: Session, cases: Sequence[Mapping[str, Any]], clock: Clock) -> list[list[Any]]:
    """The results for each set of inputs, or for as many as the budget allows, at least one."""
    results: list[list[Any]] = []
    for feeds in cases:
        try:
            clock.check()
            results.append(session.run(feeds, clock.left))
        except OutOfTimeError:
            if not results:
                raise
            break
    return results


def inner_values(source: Source, run: Run, at: int, names: Sequence[str], clock: Clock) -> dict[str, Any]:
    """Inner values of a model by name, on one of the sets of inputs of a run, in the same runtime."""
    clock.check()
    accepted = {value.name for value in source.proto.graph.input}
    shown = replace(source, proto=with_outputs(source.proto, names))
    feeds = {name: value for name, value in run.cases[at].items() if name in accepted}
    results = runtime_named(run.runtime).load(shown).run(feeds, clock.left) if names else []
    return dict(zip(names, results, strict=True))


def values_of(
    before: ModelProto, seen: Callable[[Sequence[str]], Mapping[str, Any]], names: Collection[str]
) -> dict[str, Any]:
    """Values of the main graph by name: initializers as they are, other values from a run of the source."""
    held = {tensor.name: tensor for tensor in before.graph.initializer if tensor.name in names}
    produced = [name for node in before.graph.node for name in node.output if name in names]
    # numpy gives numbers of rank 0 where arrays are meant
    values = {
        name: np.asarray(value) if isinstance(value, np.generic) else value for name, value in seen(produced).items()
    }
    for name, tensor in held.items():
        with suppress(Exception):  # data in another file, or an element type that numpy lacks
            values.setdefault(name, held_array(tensor) if is_held(tensor) else numpy_helper.to_array(tensor))
    return values
