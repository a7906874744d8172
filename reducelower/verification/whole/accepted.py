"""Finds inputs that a whole model accepts: several sizes, several kinds of values, and tensors without elements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from onnx import ModelProto

from reducelower.model.value_info import stated_type
from reducelower.text import counted
from reducelower.verification.feeding.bases import Bases
from reducelower.verification.feeding.filling import Filling
from reducelower.verification.feeding.limits import INTEGERS, Limits
from reducelower.verification.feeding.roles import roles_of
from reducelower.verification.feeding.shapes import unfit
from reducelower.verification.feeding.sizes import Base, ladder, of_held, of_length
from reducelower.verification.inputs.declared import InputSpec, are_stated, bound, input_specs, named, names_in
from reducelower.verification.judging.compare import tells
from reducelower.verification.running.conditions import conditions
from reducelower.verification.running.memory import TooLargeError, allowed_bytes, held_bytes
from reducelower.verification.running.runtimes import Session
from reducelower.verification.running.sizes import shape_key
from reducelower.verification.running.source import CannotRunError, OutOfTimeError

__all__ = ["Accepted"]

_ENOUGH = 2  # sets of inputs with different sizes, that give every output elements
_OF_WEIGHTS = 12  # sizes
_PLACES = 8  # along each axis of the smallest map, so that windows there have something to look at
_KINDS = ("wide", "false", "true")  # beyond the saturation of activations, and both truth values
# Integers may be a mask, whose other values than zero and one overflow, or the size that a picture should have.
_INTEGERS = (0, 1), (1, 1), (100, 100)
_MOST_WITHOUT = 3  # sizes that are zero one at a time


@dataclass
class Accepted:
    """Makes sets of inputs, runs the source on each, and keeps those that it accepts.

    Attributes:
        session: the source, loaded.
        model: the source.
        given: the inputs that the caller gives; the others are made.
        notes: sentences for a reader, to be added to.
        takes_empty: whether no kernel of either model may object to inputs without elements.
        cases, results: the sets of inputs, and the outputs for each.
        inside: what the session gives after the outputs, on the first set of inputs.
        _told: for each set, whether there is something to compare in each output.
    """

    session: Session
    model: ModelProto
    given: Mapping[str, Any]
    notes: list[str]
    takes_empty: bool
    cases: list[dict[str, Any]] = field(default_factory=list)
    results: list[list[Any]] = field(default_factory=list)
    inside: list[Any] = field(default_factory=list)
    _told: list[list[bool]] = field(default_factory=list)
    _failures: list[CannotRunError] = field(default_factory=list)
    _unfit: set[object] = field(default_factory=set)
    _has_free: bool = False
    _has_roles: bool = False
    _heeds_names: bool = True
    _named_otherwise: dict[str, int] = field(default_factory=dict)

    def find(self, specs: Sequence[InputSpec]) -> None:
        """Keep accepted inputs; raise a CannotRunError if there are none. The first set has the caller's inputs."""
        fixed = _sizes_of(specs, self.given)
        specs = [spec for spec in specs if spec.name not in self.given]
        constants = {tensor.name: tuple(tensor.dims) for tensor in self.model.graph.initializer}
        roles = roles_of(reversed(self.model.graph.node)) if specs else {}
        # Nobody counts tokens or classes from the end, and kernels that take the place of a Gather do not either.
        roles = {name: replace(role, kind="class") if role.kind == "index" else role for name, role in roles.items()}
        limits = Limits({spec.name for spec in specs}, roles=roles, constant_shapes=constants)
        bases, empty = Bases(specs, limits), Base(named(specs), {}, {})
        free = sorted(set(names_in(empty.dims)) - fixed.keys())
        self._has_free, self._has_roles = bool(free), not roles.keys().isdisjoint(empty.dims)
        try:
            base = self._of_sizes(bases, empty, fixed)
            self._of_other_kinds(specs)
            self._without_elements(bases, base, free)
        except OutOfTimeError:
            if not self.cases:
                raise
            self.notes.append(conditions().clock.allowed(len(self.cases)))

    def _of_sizes(self, bases: Bases, empty: Base, fixed: Mapping[str, int]) -> Base:
        """Try several sizes; return the first inputs that are accepted."""
        found: Base | None = None
        for at, sizes in enumerate(self._sizes(empty, fixed)):
            base = self._at(bases, empty, sizes, at)
            found = found or base
            if sum(map(all, self._told)) >= _ENOUGH:
                break
        step = _longest_step(self.model)
        for sizes in of_length(empty.dims, fixed, _PLACES * step) if step > 1 else ():
            large = self._at(bases, empty, sizes, len(self.cases))
            found = found or large
        if found is None:
            error = next((each for each in self._failures if isinstance(each, TooLargeError)), None)
            raise error or CannotRunError(f"no inputs were found that it accepts: {self._failures[0].reason}")
        return found

    def _at(self, bases: Bases, empty: Base, sizes: Mapping[str, int], seed: int) -> Base | None:
        """Inputs of these sizes, or of those that the outputs then have by name; unless the model's names mislead."""
        self._named_otherwise = {}
        base = bases.at(empty, sizes, self._takes, seed)
        if base is None and self._named_otherwise:
            base = bases.at(empty, {**sizes, **self._named_otherwise}, self._takes, seed)
            self._heeds_names = base is not None
            base = base or bases.at(empty, sizes, self._takes, seed)
        return base

    def _sizes(self, empty: Base, fixed: Mapping[str, int]) -> Iterator[Mapping[str, int]]:
        """Sizes to try; if none is accepted, those of weights, in the order in which nodes read them."""
        yield from ladder(empty.dims, fixed)
        if not self.cases:
            shapes = {tensor.name: tensor.dims for tensor in self.model.graph.initializer}
            read = (shapes.get(name, ()) for node in self.model.graph.node for name in node.input)
            held = dict.fromkeys(size for shape in read if len(shape) > 1 for size in shape if size > 1)
            yield from of_held(empty.dims, fixed, list(held)[:_OF_WEIGHTS])

    def _takes(self, made: Mapping[str, Any]) -> bool:
        """Keep a set of inputs if the source accepts it, and return whether it does."""
        feeds, shapes = {**self.given, **made}, tuple(map(shape_key, made.values()))
        if shapes in self._unfit or not self._has_room():
            return False
        # Sizes that are declared are right.
        if self._has_free and (objection := unfit(feeds, self.model)):
            self._failures.append(CannotRunError(objection))
            self._unfit.add(shapes)
            return False
        try:
            results = self.session.run(feeds)
        except CannotRunError as error:
            self._failures.append(error)
            if isinstance(error, TooLargeError):
                self._unfit.add(shapes)
            return False
        count = len(self.model.graph.output)
        stated = (stated_type(output.type).sizes for output in self.model.graph.output)
        if self._has_roles and not are_stated(stated, results[:count]):
            self._failures.append(CannotRunError("it gives other shapes than the model states"))
            return False
        if self._heeds_names and (other := self._other_sizes(feeds, results)):
            self._failures.append(CannotRunError("it gives other sizes than the model states by name"))
            self._named_otherwise = other
            return False
        self.inside = self.inside if self.cases else results[count:]
        self.cases.append(feeds)
        self.results.append(results[:count])
        self._told.append([tells(value) for value in results[:count]])
        return True

    def _other_sizes(self, feeds: Mapping[str, Any], results: Sequence[Any]) -> dict[str, int]:
        """Sizes that the outputs have where the model names them like other sizes of the inputs.

        A mask, for example, is as long as past and new keys together, and the model says so by the name of the length
        of what it yields. Kernels may accept another length.
        """
        inputs, _ = input_specs(self.model)
        outputs = [InputSpec(value.name, 0, stated_type(value.type).sizes) for value in self.model.graph.output]
        yielded = _sizes_of(outputs, dict(zip([output.name for output in outputs], results, strict=False)))
        fed, fixed = _sizes_of(inputs, feeds), _sizes_of(inputs, self.given)
        return {name: size for name, size in yielded.items() if fed.get(name, size) != size and name not in fixed}

    def _has_room(self) -> bool:
        """Whether memory has room for another set of inputs and the results of both sides; noted if not."""
        each = held_bytes(self.cases[0].values()) + 2 * held_bytes(self.results[0]) if self.cases else 0
        is_full = (len(self.cases) + 1) * each > allowed_bytes()
        if is_full:
            self.notes.append(f"The memory allowed {counted(len(self.cases), 'set')} of inputs.")
        return not is_full

    def _of_other_kinds(self, specs: Sequence[InputSpec]) -> None:
        """Add sets of other kinds of values, and other integers if an output has no finite number in any run."""
        first, rng = self.cases[0], np.random.default_rng([conditions().seed, 101])
        fillings = {spec.name: Filling(spec, Limits()) for spec in specs if spec.element_type not in INTEGERS}
        for kind in _KINDS:
            chosen = {name: filling for name, filling in fillings.items() if kind in filling.kinds}
            if chosen:
                self._takes(first | {name: each.values(kind, first[name].shape, rng) for name, each in chosen.items()})
        integers = [spec.name for spec in specs if spec.element_type in INTEGERS]
        for least, most in _INTEGERS if integers else ():
            if not all(map(any, zip(*self._told, strict=True))):
                drawn = {name: rng.integers(least, most + 1, first[name].shape) for name in integers}
                self._takes(first | {name: value.astype(first[name].dtype) for name, value in drawn.items()})

    def _without_elements(self, bases: Bases, base: Base, free: Sequence[str]) -> None:
        """Add a set in which some inputs have no elements, unless a kernel may object to them."""
        if free and conditions().feeds_empty and self.takes_empty:
            for zero in (free, *([name] for name in free[:_MOST_WITHOUT])):
                if bases.at(base, {**base.sizes, **dict.fromkeys(zero, 0)}, self._takes):
                    return


def _sizes_of(specs: Sequence[InputSpec], given: Mapping[str, Any]) -> dict[str, int]:
    """Sizes of named dimensions that arrays show, so that inputs made beside them fit; sequences show none."""
    sizes: dict[str, int] = {}
    for spec in specs:
        sizes |= bound(spec.dims or (), getattr(given.get(spec.name), "shape", ()))
    return sizes


def _longest_step(model: ModelProto) -> int:
    """How many elements of the inputs one element of the smallest map stands for, along an axis, by the strides."""
    steps: dict[str, float] = defaultdict(lambda: 1.0)
    for node in model.graph.node:
        strides = max((size for item in node.attribute if item.name == "strides" for size in item.ints), default=1)
        step = max(map(steps.__getitem__, node.input), default=1.0)
        step = step / strides if node.op_type == "ConvTranspose" else step * strides
        steps.update(dict.fromkeys(node.output, step))
    return int(max(steps.values(), default=1.0))
