"""Finds inputs that a whole model accepts: several sizes, several kinds of values, and tensors without elements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto

from reducelower.model.graph import all_nodes
from reducelower.model.text import counted
from reducelower.numerics.measure import Array, is_float
from reducelower.verification.feeding.limits import INTEGERS, takes_any
from reducelower.verification.feeding.roles import Role, roles_of
from reducelower.verification.feeding.shapes import has_empty_window, is_ruled_out
from reducelower.verification.inputs.made import STRATEGIES, InputSpec, Values, bindings, make_feeds, weight_sizes
from reducelower.verification.running.clock import Clock
from reducelower.verification.running.conditions import conditions
from reducelower.verification.running.memory import TooLargeError, allowed_bytes, held_bytes
from reducelower.verification.running.runtimes import Session
from reducelower.verification.running.source import CannotRunError

__all__ = ["Accepted", "Request", "Run"]

_ENOUGH = 2  # sets of inputs with different sizes, that give every output elements
_DRAWS = 4  # of indices and sizes that fit
_WIDE = 50.0
_OF_WEIGHTS = 12  # sizes
_OF_PICTURES = 100
_MOST_WITHOUT = 3  # sizes that are zero one at a time


@dataclass(frozen=True)
class Request:
    """The inputs, sizes and seed that the caller chose."""

    given: Mapping[str, Any]
    seed: int
    dims: Mapping[str, int]


@dataclass
class Run:
    """One side: the runtime that took it, and what it returned for each set of inputs.

    Attributes:
        session: the loaded model; after its outputs it gives the inner values that are watched.
        inside: the inner values that are watched, by name, on the first set of inputs.
    """

    runtime: str
    session: Session
    cases: list[dict[str, Any]] = field(default_factory=list)
    results: list[list[Any]] = field(default_factory=list)
    inside: dict[str, Any] = field(default_factory=dict)


@dataclass
class Accepted:
    """Makes sets of inputs, and runs the source on each; adds to the run those that it accepts.

    Attributes:
        run: the source, loaded.
        model: the source.
        specs: its inputs.
        request: the inputs that the caller gives.
        clock: the time left.
        notes: sentences for a reader, to be added to.
    """

    run: Run
    model: ModelProto
    specs: Sequence[InputSpec]
    request: Request
    clock: Clock
    notes: list[str]
    _failures: list[str] = field(default_factory=list)
    _too_large: TooLargeError | None = None

    def find(self) -> None:
        """Add accepted inputs to the run; raise a CannotRunError if there are none."""
        fixed = {**_given_sizes(self.specs, self.request.given), **self.request.dims}
        self.specs = [spec for spec in self.specs if spec.name not in self.request.given]
        sizes = self._of_sizes(fixed, STRATEGIES if self.specs else STRATEGIES[:1], {})
        roles = {} if self.run.cases else roles_of(reversed(self.model.graph.node))
        if any(spec.name in roles for spec in self.specs):
            sizes = self._of_sizes(fixed, STRATEGIES[:1] * _DRAWS, roles)
        if not self.run.cases:
            raise self._too_large or CannotRunError(f"no inputs were found that it accepts: {self._failures[0]}")
        self._of_other_kinds(fixed if sizes is None else sizes, free=sorted(set(sizes or ()) - set(fixed)))

    def _of_sizes(
        self, fixed: Mapping[str, int], ways: Sequence[Values], roles: Mapping[str, Role]
    ) -> Mapping[str, int] | None:
        """Try several sizes, with gentler values where some are rejected; return the first sizes that are accepted.

        Indices and counts are drawn so that they fit the other inputs, as far as `roles` says what they refer to.
        """
        first: Mapping[str, int] | None = None
        gentle: set[str] = set()
        for at, sizes in enumerate(chain(bindings(self.specs, fixed), self._of_weights(fixed))):
            for draw, values in enumerate(ways):
                if self._is_over():
                    return first
                feeds = self._made(sizes, values, at)
                self._fit(feeds, roles, np.random.default_rng([self.request.seed, at, 103, draw]))
                if self.specs and has_empty_window(self.model, feeds):
                    self._failures.append("a window has nothing to look at on data so small")
                    break
                if sizes != fixed and is_ruled_out(self.model, feeds):  # the sizes that are declared are right
                    self._failures.append("inputs of these shapes are none that its operators take")
                    break
                refusal = self._refusal_of(feeds)
                if refusal is None:
                    first = sizes if first is None else first
                    gentle |= {values} - {"random"}
                    break
                if isinstance(refusal, TooLargeError):
                    self._too_large = self._too_large or refusal
                    break
                self._failures.append(refusal.reason)
            if sum(map(_tells, self.run.results)) >= _ENOUGH:
                break
        if gentle:
            self.notes.append(
                f"The source rejects some random values; it was also run on {', '.join(sorted(gentle))} values."
            )
        return first

    def _of_weights(self, fixed: Mapping[str, int]) -> Iterator[Mapping[str, int]]:
        """Sizes of weights, in the order in which nodes read them, if no other sizes were accepted."""
        if self.run.cases:
            return
        shapes = {tensor.name: tensor.dims for tensor in self.model.graph.initializer}
        read = (shapes.get(name, ()) for node in self.model.graph.node for name in node.input)
        sizes = dict.fromkeys(size for shape in read if len(shape) > 1 for size in shape if size > 1)
        yield from weight_sizes(self.specs, fixed, list(sizes)[:_OF_WEIGHTS])

    def _made(self, sizes: Mapping[str, int], values: Values, *seed: int) -> dict[str, Any]:
        rng = np.random.default_rng([self.request.seed, *seed])
        return {**self.request.given, **make_feeds(self.specs, sizes, values, rng)}

    def _fit(self, feeds: dict[str, Any], roles: Mapping[str, Role], rng: np.random.Generator) -> None:
        for name in [spec.name for spec in self.specs if spec.name in roles]:
            data = feeds.get(roles[name].data)
            found = roles[name].values(None if data is None else np.shape(data), feeds[name].shape, rng)
            if found is not None:
                feeds[name] = np.asarray(found, feeds[name].dtype)

    def _is_over(self) -> bool:
        """Whether the time is over and something was accepted; an OutOfTimeError if nothing was."""
        if self.clock.over and self.run.cases:
            self.notes.append(self.clock.allowed(len(self.run.cases)))
            return True
        self.clock.check()
        return False

    def _refusal_of(self, feeds: dict[str, Any]) -> CannotRunError | None:
        """Add inputs to the run if the source accepts them; return why it does not, else None."""
        try:
            results = self.run.session.run(feeds, self.clock.left)
        except CannotRunError as error:
            return error
        count = len(self.model.graph.output)
        if not self.run.cases:
            self.run.inside = dict(zip(self.run.inside, results[count:], strict=True))
        self.run.cases.append(feeds)
        self.run.results.append(results[:count])
        return None

    def _of_other_kinds(self, sizes: Mapping[str, int], free: Sequence[str]) -> None:
        """Add sets of other kinds of values, as far as the source accepts them; one without elements is enough."""
        others = ((feeds, False) for feeds in chain(self._of_values(), self._of_integers(sizes)))
        for feeds, is_enough in chain(others, ((feeds, True) for feeds in self._without_elements(sizes, free))):
            if self._is_over():
                return
            if self._is_full():
                self.notes.append(f"The memory allowed {counted(len(self.run.cases), 'set')} of inputs.")
                return
            if self._refusal_of(feeds) is None and is_enough:
                return

    def _is_full(self) -> bool:
        """Whether memory has no room for another set of inputs and the results of both sides."""
        each = held_bytes(self.run.cases[0].values()) + 2 * held_bytes(self.run.results[0])
        return (len(self.run.cases) + 1) * each > allowed_bytes()

    def _of_values(self) -> Iterator[dict[str, Any]]:
        """Wide values, and both truth values."""
        first, rng = self.run.cases[0], np.random.default_rng([self.request.seed, 101])
        drawn = {spec.name: _wide(first[spec.name], rng) for spec in self.specs}
        bools = [spec.name for spec in self.specs if spec.element_type == TensorProto.BOOL]
        changes: list[Mapping[str, Any]] = [{name: value for name, value in drawn.items() if value is not None}]
        changes += [{name: np.full_like(first[name], truth) for name in bools} for truth in (False, True)]
        yield from ({**first, **changed} for changed in changes if changed)

    def _of_integers(self, sizes: Mapping[str, int]) -> Iterator[dict[str, Any]]:
        """Integers of zero and one, of one, and of a hundred, if an output has no finite number in any run.

        Integers may be a mask, whose other values overflow, or the size that a picture should have.
        """
        whole = [spec.name for spec in self.specs if spec.element_type in INTEGERS]
        for at, number in enumerate((None, 1, _OF_PICTURES) if whole else ()):
            if _tells_numbers(self.run.results):
                return
            feeds = self._made(sizes, "small", 104, at)
            yield feeds if number is None else {**feeds, **{name: np.full_like(feeds[name], number) for name in whole}}

    def _without_elements(self, sizes: Mapping[str, int], free: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Some inputs without elements, unless a kernel may object to them."""
        if not (free and conditions().feeds_empty) or not takes_any(all_nodes(self.model)):
            return
        for zero in (free, *([name] for name in free[:_MOST_WITHOUT])):
            feeds = self._made({**sizes, **dict.fromkeys(zero, 0)}, "random", 102)
            if not has_empty_window(self.model, feeds) and not is_ruled_out(self.model, feeds):
                yield feeds


def _tells(results: Sequence[Any]) -> bool:
    """Whether every output has elements."""
    return all(value.size for value in results if isinstance(value, np.ndarray))


def _tells_numbers(results: Sequence[Sequence[Any]]) -> bool:
    """Whether every output of floats has a finite one in some run."""
    outputs = ([value for value in values if isinstance(value, np.ndarray)] for values in zip(*results, strict=True))
    return all(
        any(np.isfinite(value.astype(np.float64)).any() for value in values)
        for values in outputs
        if values and is_float(values[0])
    )


def _wide(value: Any, rng: np.random.Generator) -> Array | None:
    """Floats beyond the saturation of activations, and negative integers; None for other types."""
    if not isinstance(value, np.ndarray) or value.dtype.hasobject or value.dtype.kind not in "fi":
        return None
    drawn = rng.integers(-9, 10, value.shape) if value.dtype.kind == "i" else rng.uniform(-_WIDE, _WIDE, value.shape)
    return np.asarray(drawn).astype(value.dtype)


def _given_sizes(specs: Sequence[InputSpec], given: Mapping[str, Any]) -> dict[str, int]:
    """Sizes of named dimensions that the caller's arrays show, so that the inputs made beside them fit."""
    sizes: dict[str, int] = {}
    for spec in specs:
        shape = np.shape(given[spec.name]) if spec.name in given else ()
        if spec.dims is not None and len(shape) == len(spec.dims):
            sizes |= {dim: size for dim, size in zip(spec.dims, shape, strict=True) if isinstance(dim, str)}
    return sizes
