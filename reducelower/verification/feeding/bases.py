"""Inputs that a source takes: those of a run of the model, with other sizes, or some that are made up.

Sizes are those that the run shows, smaller where both sides take that and nothing rests on them; else some that the
source takes. What says where or how much is changed with the sizes, or drawn until the source takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from onnx import helper

from reducelower.numerics.measure import Array
from reducelower.verification.feeding.filling import Filling
from reducelower.verification.feeding.limits import Limits
from reducelower.verification.inputs.made import STRATEGIES, InputSpec, Values, bindings, random_array
from reducelower.verification.regions.places import Dims
from reducelower.verification.running.memory import most_elements

__all__ = ["DRAWS", "LARGE", "MANY", "Accepts", "Base", "Bases"]

LARGE = 20_000  # elements; above, each kind of value costs more than it is likely to show
MANY = 1000  # elements, of which some lie close to a step
_SOME = 48  # elements, so that every value of a kind is likely to be among them
DRAWS = 3
_SMALL = 7
"""Sizes of a model above it are made smaller, where nothing rests on them."""
_SMALLER = (_SMALL, 64, 1024)  # as small as they may be: a window may take in more
_RANKS = (2, 3, 1, 4, 0)  # of inputs whose rank is not known
_LONGEST = 8  # integers, among which there may be sizes
_STRATEGIES: tuple[Values, ...] = (*STRATEGIES[:1] * 6, *STRATEGIES[1:])  # what is drawn may fit at another time

Accepts = Callable[[Mapping[str, Any]], bool]


@dataclass(frozen=True)
class Base:
    """Inputs that the source takes: their sizes, free ones as symbols, and what they are."""

    dims: Mapping[str, Dims]
    sizes: Mapping[str, int]
    feeds: Mapping[str, Array]

    def shapes(self, sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """The shapes of the inputs at these sizes."""
        return {name: _shape(dims, sizes) for name, dims in self.dims.items()}

    def count(self, sizes: Mapping[str, int] | None = None) -> int:
        """Elements of the largest input, at these sizes or its own."""
        return max(map(prod, self.shapes(self.sizes if sizes is None else sizes).values()), default=0)


@dataclass
class Bases:
    """Looks for inputs that a source takes.

    Attributes:
        specs: the inputs, with the sizes that are declared.
        limits: what may not be fed.
        seed: seed for random values.
        samples: what the inputs are in a run of the model, at some of the places.
        fixed: sizes on which the replacement may rest.
        rests_on_names: whether a rewrite rests on which sizes have one name, so that only the samples say what fits.
    """

    specs: Sequence[InputSpec]
    limits: Limits
    seed: int
    samples: Sequence[Mapping[str, Array]] = ()
    fixed: Collection[int] = ()
    rests_on_names: bool = False

    def _sized(self, sample: Mapping[str, Array], suits: Accepts) -> Base:
        """A sample with large sizes made smaller, or with more elements, if both sides take that."""
        dims, sizes = self._free(sample)
        base = Base(dims, sizes, sample)
        large = sorted(dim for dim, size in sizes.items() if size > _SMALL)
        tried: list[dict[str, int]] = []
        if large and base.count() > LARGE // 40:
            shrunk = [{dim: min(sizes[dim], most + 2 * at) for at, dim in enumerate(large)} for most in _SMALLER]
            # Of groups, say, the channels stay as many, and of a signal what a window takes in.
            shrunk += [shrunk[0] | {kept: sizes[kept]} for kept in large]
            tried = sorted((sizes | each for each in shrunk), key=base.count)
        elif base.count() < _SOME:
            more = ({dim: size * factor for dim, size in sizes.items()} for factor in range(2, _SOME + 1))
            tried = [each for each in more if _SOME <= base.count(each) <= LARGE][:1]
            alone = ({dim: size * (_SOME // max(base.count(), 1) + 1)} for dim, size in sizes.items())
            tried += [sizes | each for each in alone][:DRAWS]
        found = (self._at(base, each, suits) for each in tried if not self.rests_on_names)
        return next(filter(None, found), base)

    def _free(self, sample: Mapping[str, Array]) -> tuple[dict[str, Dims], dict[str, int]]:
        """The sizes of a sample, with symbols for those on which nothing rests, and what these are."""
        named: dict[str, set[int]] = {}
        for spec in self.specs:
            for dim, size in zip(spec.dims or (), sample[spec.name].shape, strict=False):
                if isinstance(dim, str):
                    named.setdefault(dim, set()).add(size)
        dims: dict[str, Dims] = {}
        sizes: dict[str, int] = {}
        for spec in self.specs:
            shape = sample[spec.name].shape
            found: list[int | str] = []
            for dim, size in zip(spec.dims if spec.dims is not None else (None,) * len(shape), shape, strict=True):
                is_told = isinstance(dim, str) and len(named[dim]) == 1
                free = str(dim) if is_told else f"size {size}"  # equal sizes may be equal by chance
                found.append(size if isinstance(dim, int) or size in self.fixed else free)
                if isinstance(found[-1], str):
                    sizes[free] = size
            dims[spec.name] = tuple(found)
        return dims, sizes

    def _found(self, specs: Sequence[InputSpec], accepts: Accepts) -> Base | None:
        """Inputs that the source takes, of sizes that are declared or made up."""
        vectors = self.limits.vectors
        specs = [replace(spec, dims=spec.dims or (None,)) if spec.name in vectors else spec for spec in specs]
        return next(filter(None, (self._first(ranked, accepts) for ranked in self._ranked(specs))), None)

    def _ranked(self, specs: Sequence[InputSpec]) -> Iterator[list[InputSpec]]:
        """The inputs with ranks for those that have none, first that of the others."""
        known = [len(spec.dims) for spec in specs if spec.dims is not None]
        ranks = list(dict.fromkeys([*sorted(set(known), key=known.count, reverse=True), *_RANKS]))
        if 0 < len(known) < len(specs) and not self.limits.takes_any:
            # Some kernels end the process on another rank than theirs, which is most often that of their other inputs.
            ranks = [rank for rank in ranks if 2 * known.count(rank) > len(known)]
        for rank in ranks if len(known) < len(specs) else ranks[:1]:
            yield [spec if spec.dims is not None else replace(spec, dims=(None,) * rank) for spec in specs]

    def _first(self, specs: Sequence[InputSpec], accepts: Accepts) -> Base | None:
        dims: dict[str, Dims] = {
            spec.name: tuple(f"axis {at}" if dim is None else dim for at, dim in enumerate(spec.dims or ()))
            for spec in specs
        }
        empty = Base(dims, {}, {})
        most = max(LARGE * 50, empty.count(dict.fromkeys(next(bindings(specs)), 1)))
        for sizes in self._candidates(specs, empty):
            fitting = {name: max(size, self.limits.least) for name, size in sizes.items()}
            if empty.count(fitting) <= most and (found := self._at(empty, fitting, accepts)) is not None:
                return found
        return None

    def _candidates(self, specs: Sequence[InputSpec], empty: Base) -> Iterator[dict[str, int]]:
        """Sizes for free dimensions: many elements, distinct ones, one of them 1, like others that are declared."""
        ladder = list(bindings(specs))
        first = ladder[0]
        for factor in range(2, _SOME + 1):
            more = {name: size * factor for name, size in first.items()}
            if empty.count(more) >= _SOME > empty.count(first):
                yield more
                break
        yield first
        if len(first) > 1:
            yield from ({**first, name: 1} for name in first)
            yield from ({**dict.fromkeys(first, 1), name: size} for name, size in first.items())
        yield from ladder[1:]
        yield from (first | like for like in _like_the_others(specs))
        ranks = {name: len(dims) for name, dims in empty.dims.items()}
        padded = {name: role.data for name, role in self.limits.roles.items() if role.kind == "pad"}
        padding = {dims[0]: 2 * ranks.get(padded.get(name, ""), 0) for name, dims in empty.dims.items() if dims}
        if lengths := {dim: length for dim, length in padding.items() if length and isinstance(dim, str)}:
            yield first | lengths
        for size in sorted(self.limits.sizes):
            if 1 < size <= LARGE and first:
                yield dict.fromkeys(first, size)
                yield from ({**dict.fromkeys(first, 1), name: size} for name in first)

    def _at(self, base: Base, sizes: Mapping[str, int], accepts: Accepts, seed: int = 0) -> Base | None:
        """Ordinary inputs of some sizes, if the source takes them; what says where is drawn until it does."""
        shapes = base.shapes(sizes)
        if max(map(prod, shapes.values()), default=0) > most_elements():
            return None
        places = [spec for spec in self.specs if spec.name in self.limits.where]
        found = self._filled(shapes, dict.fromkeys(self._fillings, "random"), 0, seed)
        tries: list[Values | None] = [None] if base.feeds else []
        tries += _STRATEGIES if places else [] if tries else STRATEGIES[:1]
        for draw, values in enumerate(tries):
            for at, spec in enumerate(places):
                rng = np.random.default_rng([self.seed, seed, draw, at])
                if values is None:
                    found[spec.name] = _changed(base, spec.name, shapes[spec.name], sizes)
                else:
                    found[spec.name] = self._drawn(spec, values, shapes, rng)
            feeds = {spec.name: found[spec.name] for spec in self.specs}  # in their order, by which they are named
            if accepts(feeds):
                return replace(base, sizes=dict(sizes), feeds=feeds)
        return None

    def _drawn(
        self, spec: InputSpec, values: Values, shapes: Mapping[str, tuple[int, ...]], rng: np.random.Generator
    ) -> Array:
        """An index over its whole range or a shape for what is there, where these are known, else a small number."""
        role, shape = self.limits.roles.get(spec.name), shapes[spec.name]
        if role is not None and values == "random":
            of = shapes.get(role.data, self.limits.held.get(role.data))
            found = role.values(of, shape, rng, self.limits.constants)
            if found is not None:
                # numpy gives numbers of rank 0
                return np.asarray(found, helper.tensor_dtype_to_np_dtype(spec.element_type))
        return random_array(spec.element_type, shape, values, rng)

    @cached_property
    def _fillings(self) -> dict[str, Filling]:
        return {spec.name: Filling(spec, self.limits) for spec in self.specs if spec.name not in self.limits.where}

    def _filled(self, shapes: Mapping[str, tuple[int, ...]], kinds: Mapping[str, str], *seed: int) -> dict[str, Array]:
        """Values of kinds, by name, for inputs that do not say where."""
        rng = np.random.default_rng([self.seed, *seed])
        return {name: filling.values(kinds[name], shapes[name], rng) for name, filling in self._fillings.items()}


def _changed(base: Base, name: str, shape: tuple[int, ...], sizes: Mapping[str, int]) -> Array:
    """What says where, with sizes in it that are others now."""
    value, to = base.feeds[name], {size: sizes[dim] for dim, size in base.sizes.items()}
    if value.dtype.kind in "iu" and value.size <= _LONGEST:
        value = np.array([to.get(item, item) for item in value.ravel().tolist()], value.dtype).reshape(value.shape)
    return value if value.shape == shape else np.resize(value, shape).astype(value.dtype)


def _like_the_others(specs: Sequence[InputSpec]) -> Iterator[dict[str, int]]:
    """For free sizes, what each other input of as many dimensions declares along the same axes."""
    for other in specs:
        found: dict[str, int] = {}
        for spec in specs:
            if len(spec.dims or ()) == len(other.dims or ()):
                pairs = zip(spec.dims or (), other.dims or (), strict=True)
                axes = [(dim or f"axis {at}", to) for at, (dim, to) in enumerate(pairs) if isinstance(to, int)]
                found |= {dim: to for dim, to in axes if isinstance(dim, str)}
        if found:
            yield found


def _shape(dims: Dims, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(dim if isinstance(dim, int) else sizes[str(dim)] for dim in dims)
