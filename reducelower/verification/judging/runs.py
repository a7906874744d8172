"""Runs the two sides of a comparison: each in the first runtime that takes it, on the same inputs."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, ValueInfoProto, numpy_helper

from reducelower.model.graph import all_nodes
from reducelower.model.skeleton import DEFAULTS_SINCE
from reducelower.model.text import counted
from reducelower.numerics.measure import Array, is_float
from reducelower.verification.feeding.limits import INTEGERS, takes_any
from reducelower.verification.feeding.nonempty import feeds_no_empty
from reducelower.verification.feeding.roles import roles_of
from reducelower.verification.feeding.shapes import is_ruled_out, leaves_nothing
from reducelower.verification.inputs.made import STRATEGIES, InputSpec, bindings, check_making, input_specs, make_feeds
from reducelower.verification.running.memory import TooLargeError, allowed_bytes, held_bytes
from reducelower.verification.running.runtimes import Session, runtime_named
from reducelower.verification.running.source import CannotRunError, OutOfTimeError, Source

__all__ = ["Clock", "Request", "Run", "run_result", "run_source"]

_ENOUGH = 2  # sets of inputs with different sizes, that give every output elements
_DRAWS = 4  # of indices and sizes that fit
_WIDE = 50.0
_MOST_WITHOUT = 3  # sizes that are zero one at a time


class Clock:
    """What is left of the budget."""

    def __init__(self, budget: float | None, left: float | None = None) -> None:
        """Start counting `budget` seconds, or what is `left` of them; None for no limit."""
        self._end = None if budget is None else time.monotonic() + (budget if left is None else left)
        self.budget = budget

    def part(self, share: float) -> Clock:
        """A clock that is over once a share of what is left is used up."""
        return Clock(self.budget, None if self.left is None else share * self.left)

    @property
    def left(self) -> float | None:
        """Seconds left; None when there is no limit."""
        return None if self._end is None else max(self._end - time.monotonic(), 0.0)

    @property
    def over(self) -> bool:
        """Whether the budget is used up."""
        return self.left == 0.0

    def check(self) -> None:
        """Raise OutOfTimeError when the budget is used up."""
        if self.over:
            raise OutOfTimeError(f"the budget of {self.budget:g} s is used up", unsupported=True)


@dataclass(frozen=True)
class Request:
    """What the caller wants the source to be run on."""

    given: Mapping[str, Any]
    seed: int
    dims: Mapping[str, int]
    overrides: bool = True


@dataclass
class Run:
    """One side: the runtime that took it, and what it returned for each set of inputs.

    What was `seen` are values inside, by name, as the first set of inputs gives them.
    """

    runtime: str
    session: Session
    cases: list[dict[str, Any]] = field(default_factory=list)
    results: list[list[Any]] = field(default_factory=list)
    seen: Mapping[str, Any] = field(default_factory=dict)


def run_source(
    source: Source,
    names: Sequence[str],
    request: Request,
    clock: Clock,
    notes: list[str],
    watched: Sequence[str] = (),
) -> Run:
    """Run the source in the first of the runtimes that takes it, on inputs that it accepts; else a CannotRunError.

    Values inside that are `watched` are kept as the first set of inputs gives them.
    """
    specs, skipped = input_specs(source.proto)
    left_out = [reason for name, reason in skipped.items() if name not in request.given]
    if left_out:
        raise CannotRunError("; ".join(left_out) + "; give its value as an input")
    check_making([spec for spec in specs if spec.name not in request.given], request.dims)
    reasons: list[str] = []
    for name in names:
        clock.check()
        try:
            session = _Watching.load(name, source, watched)
            run = Run(name, session)
            _find_cases(run, source, specs, request, clock, notes)
            run.seen = session.seen(run.cases[0])
        except TooLargeError:
            raise  # another runtime takes no less
        except CannotRunError as error:
            reasons.append(error.reason)
            continue
        if reasons:
            notes.append(f"The source model was run with the {name} evaluator: {reasons[-1]}.")
        return run
    raise (OutOfTimeError if clock.over else CannotRunError)("; ".join(reasons))


@dataclass
class _Watching:
    """A model with some values inside as further outputs, which nobody is given but who asks."""

    session: Session
    outputs: int
    names: Sequence[str]
    first: list[tuple[Mapping[str, Any], list[Any]]] = field(default_factory=list)

    @staticmethod
    def load(runtime: str, source: Source, names: Sequence[str]) -> _Watching:
        """Load a model, without what is to be watched where a runtime does not take it with that."""
        outputs = [value.name for value in source.proto.graph.output]
        inner = [name for name in names if name not in outputs]
        if inner:
            shown = ModelProto()
            shown.CopyFrom(source.proto)
            shown.graph.output.extend(ValueInfoProto(name=name) for name in inner)
            with suppress(CannotRunError):
                watched = Source(shown, source.folder, weights=source.weights)
                return _Watching(runtime_named(runtime).load(watched), len(outputs), [*outputs, *inner])
        return _Watching(runtime_named(runtime).load(source), len(outputs), outputs)

    def run(self, feeds: Mapping[str, Any], timeout: float | None = None) -> list[Any]:
        """What the model returns."""
        results = self.session.run(feeds, timeout)
        if not self.first:
            self.first.append((feeds, results))
        return results[: self.outputs]

    def seen(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """What was watched, if these were the first inputs that were run; it is not kept any longer."""
        given, results = self.first[0]
        self.first[:] = [({}, [])]
        return dict(zip(self.names, results, strict=True)) if given is feeds else {}


def _find_cases(
    run: Run, source: Source, specs: Sequence[InputSpec], request: Request, clock: Clock, notes: list[str]
) -> None:
    """Collect sets of inputs that the source accepts: several sizes, and gentler values where it rejects some."""
    open_specs = [spec for spec in specs if spec.name not in request.given]
    fixed = {**_given_sizes(specs, request.given), **request.dims}
    sizes_to_try = list(bindings(open_specs, fixed))
    failures: list[str] = []
    too_large: TooLargeError | None = None
    gentle: set[str] = set()
    accepted: list[Mapping[str, int]] = []
    for at, sizes in enumerate(sizes_to_try):
        for values in STRATEGIES if open_specs else STRATEGIES[:1]:
            if clock.over and run.cases:
                notes.append(_allowed(clock, len(run.cases)))
                return
            clock.check()
            rng = np.random.default_rng([request.seed, at])
            feeds = {**request.given, **make_feeds(open_specs, sizes, values, rng)}
            if open_specs and leaves_nothing(source.proto, feeds):
                failures.append("a window has nothing to look at on data so small")
                break
            if sizes != fixed and is_ruled_out(source.proto, feeds):  # the sizes that are declared are right
                failures.append("inputs of these shapes are none that its operators take")
                break
            try:
                results = run.session.run(feeds, clock.left)
            except TooLargeError as error:
                too_large = too_large or error
                break
            except CannotRunError as error:
                failures.append(error.reason)
                continue
            run.cases.append(feeds)
            run.results.append(results)
            accepted.append(sizes)
            gentle |= {values} - {"random"}
            break
        if sum(map(_tells, run.results)) >= _ENOUGH:
            break
    if not run.cases:
        _find_fitting(run, source, open_specs, sizes_to_try, request, clock)
    if not run.cases and too_large is not None:
        raise too_large
    if not run.cases:
        raise CannotRunError(f"no inputs were found that it accepts: {failures[0]}")
    if gentle:
        notes.append(f"The source rejects some random values; it was also run on {', '.join(sorted(gentle))} values.")
    others = _of_other_kinds(run.cases[0], source, open_specs, request)
    others = chain(others, _with_masks(run, open_specs, accepted[0] if accepted else fixed, request))
    free = set(accepted[0]) - set(fixed) if accepted else ()
    empty = _without_elements(source, open_specs, accepted[0] if accepted else fixed, free, request)
    for feeds, is_enough in chain(((feeds, False) for feeds in others), ((feeds, True) for feeds in empty)):
        if clock.over:
            notes.append(_allowed(clock, len(run.cases)))
            return
        if _is_full(run):
            notes.append(f"The memory allowed {counted(len(run.cases), 'set')} of inputs.")
            return
        try:
            results = run.session.run(feeds, clock.left)
        except CannotRunError:
            continue  # of these, the source takes what it takes
        run.cases.append(feeds)
        run.results.append(results)
        if is_enough:
            break


def _find_fitting(
    run: Run,
    source: Source,
    specs: Sequence[InputSpec],
    sizes_to_try: Sequence[Mapping[str, int]],
    request: Request,
    clock: Clock,
) -> None:
    """Collect sets of inputs in which indices and sizes fit the other inputs that operators read them with."""
    roles = roles_of(reversed(source.proto.graph.node))
    told = [spec for spec in specs if spec.name in roles]
    for at, sizes in enumerate(sizes_to_try if told else ()):
        for draw in range(_DRAWS):
            rng = np.random.default_rng([request.seed, at, 103, draw])
            feeds = {**request.given, **make_feeds(specs, sizes, "random", rng)}
            for spec in told:
                data = feeds.get(roles[spec.name].data)
                found = roles[spec.name].values(None if data is None else np.shape(data), feeds[spec.name].shape, rng)
                if found is not None:
                    feeds[spec.name] = np.asarray(found, feeds[spec.name].dtype)
            if clock.over:
                return
            if leaves_nothing(source.proto, feeds) or is_ruled_out(source.proto, feeds):
                break
            try:
                results = run.session.run(feeds, clock.left)
            except CannotRunError:
                continue
            run.cases.append(feeds)
            run.results.append(results)
        if sum(map(_tells, run.results)) >= _ENOUGH:
            return


def _is_full(run: Run) -> bool:
    """Whether there is no room for another set of inputs, and for what both sides make of it."""
    each = held_bytes(run.cases[0].values()) + 2 * held_bytes(run.results[0])
    return (len(run.cases) + 1) * each > allowed_bytes()


def _tells(results: Sequence[Any]) -> bool:
    """Whether every output has elements."""
    return all(value.size for value in results if isinstance(value, np.ndarray))


def _with_masks(
    run: Run, specs: Sequence[InputSpec], sizes: Mapping[str, int], request: Request
) -> Iterator[dict[str, Any]]:
    """Sets with integers that are zero or one, where an output has no number in any run, and with integers of one.

    Integers may be a mask, of which other values overflow.
    """
    whole = [spec.name for spec in specs if spec.element_type in INTEGERS]
    for at in range(2 if whole else 0):
        if _tells_numbers(run.results):
            return
        rng = np.random.default_rng([request.seed, 104, at])
        feeds = {**request.given, **make_feeds(specs, sizes, "small", rng)}
        yield {**feeds, **{name: np.ones_like(feeds[name]) for name in whole}} if at else feeds


def _tells_numbers(results: Sequence[Sequence[Any]]) -> bool:
    """Whether every output of floats has a finite one in some run."""
    outputs = ([value for value in values if isinstance(value, np.ndarray)] for values in zip(*results, strict=True))
    return all(
        any(np.isfinite(value.astype(np.float64)).any() for value in values)
        for values in outputs
        if values and is_float(values[0])
    )


def _of_other_kinds(
    first: Mapping[str, Any], source: Source, specs: Sequence[InputSpec], request: Request
) -> Iterator[dict[str, Any]]:
    """Sets of inputs that differ in kind: wide values, both truths, defaults overridden."""
    rng = np.random.default_rng([request.seed, 101])
    changed = {spec.name: wide for spec in specs if (wide := _wide(first[spec.name], rng)) is not None}
    if changed:
        yield {**first, **changed}
    for truth in (False, True):
        settled = {
            spec.name: np.full_like(first[spec.name], truth) for spec in specs if spec.element_type == TensorProto.BOOL
        }
        if settled:
            yield {**first, **settled}
    if request.overrides:
        given = {name: value for name, value in _other_defaults(source.proto, rng).items() if name not in request.given}
        if given:
            yield {**first, **given}


def _without_elements(
    source: Source, specs: Sequence[InputSpec], sizes: Mapping[str, int], free: Collection[str], request: Request
) -> Iterator[dict[str, Any]]:
    """Sets with some inputs without elements, one of which is enough; none where a kernel may object to it."""
    if not free or not takes_any(all_nodes(source.proto)):
        return
    rng = np.random.default_rng([request.seed, 102])
    names = [] if feeds_no_empty() else sorted(free)
    for zero in ([names, *([name] for name in names[:_MOST_WITHOUT])]) if names else ():
        feeds = {**request.given, **make_feeds(specs, {**sizes, **dict.fromkeys(zero, 0)}, "random", rng)}
        if not leaves_nothing(source.proto, feeds) and not is_ruled_out(source.proto, feeds):
            yield feeds


def _wide(value: Any, rng: np.random.Generator) -> Array | None:
    """Floats beyond what activations saturate at, and integers below zero; None for what has neither."""
    if not isinstance(value, np.ndarray) or value.dtype.hasobject or value.dtype.kind not in "fi":
        return None
    drawn = rng.integers(-9, 10, value.shape) if value.dtype.kind == "i" else rng.uniform(-_WIDE, _WIDE, value.shape)
    return np.asarray(drawn).astype(value.dtype)


def _other_defaults(model: ModelProto, rng: np.random.Generator) -> dict[str, Array]:
    """Other values for initializers that are also inputs, which a caller may override from IR version 4 on."""
    inputs = {value.name for value in model.graph.input}
    if model.ir_version < DEFAULTS_SINCE or not inputs:
        return {}
    found: dict[str, Array] = {}
    for tensor in model.graph.initializer:
        if tensor.name not in inputs or tensor.data_location == TensorProto.EXTERNAL:
            continue
        value = numpy_helper.to_array(tensor)
        if is_float(value):
            found[tensor.name] = (value.astype(np.float64) + rng.uniform(0.5, 1.5, value.shape)).astype(value.dtype)
        elif value.dtype == np.bool_:
            found[tensor.name] = ~value
    return found


def _allowed(clock: Clock, count: int) -> str:
    return f"The budget of {clock.budget:g} s allowed {counted(count, 'set')} of inputs."


def _given_sizes(specs: Sequence[InputSpec], given: Mapping[str, Any]) -> dict[str, int]:
    """Sizes of named dimensions that the caller's arrays show, so that the inputs made beside them fit."""
    sizes: dict[str, int] = {}
    for spec in specs:
        shape = np.shape(given[spec.name]) if spec.name in given else ()
        if spec.dims is not None and len(shape) == len(spec.dims):
            sizes |= {dim: size for dim, size in zip(spec.dims, shape, strict=True) if isinstance(dim, str)}
    return sizes


def run_result(source: Source, names: Sequence[str], before: Run, clock: Clock, notes: list[str]) -> Run:
    """Run the converted model on the source's inputs, in the first of the runtimes that takes it.

    Where the budget ends after the first set of inputs, the result holds those that it was run on: a difference that
    they show is not to be lost.

    Raises:
        CannotRunError: none takes it, or the budget does not last for one set of inputs; ``unsupported`` when that
            says nothing against the model.
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
            notes.append(_allowed(clock, len(run.cases)))
        return run
    raise CannotRunError("; ".join(reasons), unsupported=True)


def _results(session: Session, cases: Sequence[Mapping[str, Any]], clock: Clock) -> list[list[Any]]:
    """What a model returns for each set of inputs, or for as many as the budget allows, but one at least."""
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
