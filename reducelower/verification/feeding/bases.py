"""Finds base inputs that the source accepts: from a run of the model, resized, or made up.

Sizes come from the run, reduced where both sides accept that and nothing depends on them. Without a run, sizes are
tried until the source accepts some. Indices, shapes and counts are adapted to the sizes, or drawn until it accepts.
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
from reducelower.verification.inputs.made import STRATEGIES, Dims, InputSpec, Values, bindings, random_array, shape_at
from reducelower.verification.running.memory import most_elements

__all__ = ["DRAWS", "LARGE", "MANY", "Accepts", "Base", "Bases"]

LARGE = 20_000  # elements; above, each kind of value costs more than it is likely to show
MANY = 1000  # elements, so that some lie close to a step
_SOME = 48  # elements, so that every value of a kind is likely to be among them
DRAWS = 3
_SMALL = 7
"""Larger sizes from the run are reduced, if nothing depends on them."""
_SMALLER = (_SMALL, 64, 1024)  # upper bounds to try, smallest first: a window may be larger
_RANKS = (2, 3, 1, 4, 0)  # to try for inputs of unknown rank
_LONGEST = 8  # elements of an integer input that may hold sizes
_STRATEGIES: tuple[Values, ...] = (*STRATEGIES[:1] * 6, *STRATEGIES[1:])  # another random draw may fit

Accepts = Callable[[Mapping[str, Any]], bool]


@dataclass(frozen=True)
class Base:
    """Inputs that the source accepts; free sizes are symbols in `dims`, and `sizes` has their values."""

    dims: Mapping[str, Dims]
    sizes: Mapping[str, int]
    feeds: Mapping[str, Array]

    def shapes(self, sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """The shapes of the inputs at these sizes."""
        return {name: shape_at(dims, sizes) for name, dims in self.dims.items()}

    def count(self, sizes: Mapping[str, int] | None = None) -> int:
        """Elements of the largest input, at these sizes or the base's own."""
        return max(map(prod, self.shapes(self.sizes if sizes is None else sizes).values()), default=0)


@dataclass
class Bases:
    """Searches for inputs that the source accepts.

    Attributes:
        specs: the inputs, with their declared sizes.
        limits: what may not be fed.
        seed: seed for random values.
        samples: inputs captured in a run of the model, one for each of some of the sites.
        fixed: sizes that the replacement may depend on.
        rests_on_names: whether the rewrite depends on which sizes share a name, so that only the samples' sizes fit.
    """

    specs: Sequence[InputSpec]
    limits: Limits
    seed: int
    samples: Sequence[Mapping[str, Array]] = ()
    fixed: Collection[int] = ()
    rests_on_names: bool = False

    def _from_sample(self, sample: Mapping[str, Array], suits: Accepts) -> Base:
        """A sample with its large sizes reduced, or with more elements, if both sides accept that."""
        dims, sizes = self._free(sample)
        base = Base(dims, sizes, sample)
        large = sorted(dim for dim, size in sizes.items() if size > _SMALL)
        tried: list[dict[str, int]] = []
        if large and base.count() > LARGE // 40:
            shrunk = [{dim: min(sizes[dim], most + 2 * at) for at, dim in enumerate(large)} for most in _SMALLER]
            # One size stays, such as the channels of grouped operators or a signal that a window has to fit into.
            shrunk += [shrunk[0] | {kept: sizes[kept]} for kept in large]
            tried = sorted((sizes | each for each in shrunk), key=base.count)
        elif base.count() < _SOME:
            more = ({dim: size * factor for dim, size in sizes.items()} for factor in range(2, _SOME + 1))
            tried = [each for each in more if _SOME <= base.count(each) <= LARGE][:1]
            alone = ({dim: size * (_SOME // max(base.count(), 1) + 1)} for dim, size in sizes.items())
            tried += [sizes | each for each in alone][:DRAWS]
        resized = (self._base_at(base, each, suits) for each in tried if not self.rests_on_names)
        return next(filter(None, resized), base)

    def _free(self, sample: Mapping[str, Array]) -> tuple[dict[str, Dims], dict[str, int]]:
        """The sizes of a sample, as symbols where nothing depends on them, and the value of each symbol."""
        named: dict[str, set[int]] = {}
        for spec in self.specs:
            for dim, size in zip(spec.dims or (), sample[spec.name].shape, strict=False):
                if isinstance(dim, str):
                    named.setdefault(dim, set()).add(size)
        dims: dict[str, Dims] = {}
        sizes: dict[str, int] = {}
        for spec in self.specs:
            shape = sample[spec.name].shape
            sample_dims: list[int | str] = []
            for dim, size in zip(spec.dims if spec.dims is not None else (None,) * len(shape), shape, strict=True):
                has_one_size = isinstance(dim, str) and len(named[dim]) == 1
                free = str(dim) if has_one_size else f"size {size}"  # equal sizes may be equal by chance
                sample_dims.append(size if isinstance(dim, int) or size in self.fixed else free)
                if isinstance(sample_dims[-1], str):
                    sizes[free] = size
            dims[spec.name] = tuple(sample_dims)
        return dims, sizes

    def _search(self, specs: Sequence[InputSpec], accepts: Accepts) -> Base | None:
        """Inputs that the source accepts, at declared or made-up sizes."""
        vectors = self.limits.vectors
        specs = [replace(spec, dims=spec.dims or (None,)) if spec.name in vectors else spec for spec in specs]
        return next(filter(None, (self._search_sizes(ranked, accepts) for ranked in self._ranked(specs))), None)

    def _ranked(self, specs: Sequence[InputSpec]) -> Iterator[list[InputSpec]]:
        """The inputs, with a rank for those of unknown rank: first the most common rank of the others."""
        known_ranks = [len(spec.dims) for spec in specs if spec.dims is not None]
        ranks = list(dict.fromkeys([*sorted(set(known_ranks), key=known_ranks.count, reverse=True), *_RANKS]))
        if 0 < len(known_ranks) < len(specs) and not self.limits.takes_any:
            # Some kernels end the process on a wrong rank. The right one is mostly that of their other inputs.
            ranks = [rank for rank in ranks if 2 * known_ranks.count(rank) > len(known_ranks)]
        for rank in ranks if len(known_ranks) < len(specs) else ranks[:1]:
            yield [spec if spec.dims is not None else replace(spec, dims=(None,) * rank) for spec in specs]

    def _search_sizes(self, specs: Sequence[InputSpec], accepts: Accepts) -> Base | None:
        dims: dict[str, Dims] = {
            spec.name: tuple(f"axis {at}" if dim is None else dim for at, dim in enumerate(spec.dims or ()))
            for spec in specs
        }
        empty = Base(dims, {}, {})
        most = max(LARGE * 50, empty.count(dict.fromkeys(next(bindings(specs)), 1)))
        for sizes in self._candidates(specs, empty):
            fitting = {name: max(size, self.limits.smallest_size) for name, size in sizes.items()}
            if empty.count(fitting) <= most and (base := self._base_at(empty, fitting, accepts)) is not None:
                return base
        return None

    def _candidates(self, specs: Sequence[InputSpec], empty: Base) -> Iterator[dict[str, int]]:
        """Sizes for free dimensions: many elements, distinct sizes, one of them 1, those that other inputs declare."""
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
        yield from (first | like for like in _sizes_of_others(specs))
        ranks = {name: len(dims) for name, dims in empty.dims.items()}
        padded = {name: role.data for name, role in self.limits.roles.items() if role.kind == "pad"}
        padding = {dims[0]: 2 * ranks.get(padded.get(name, ""), 0) for name, dims in empty.dims.items() if dims}
        if lengths := {dim: length for dim, length in padding.items() if length and isinstance(dim, str)}:
            yield first | lengths
        for size in sorted(self.limits.sizes):
            if 1 < size <= LARGE and first:
                yield dict.fromkeys(first, size)
                yield from ({**dict.fromkeys(first, 1), name: size} for name in first)

    def _base_at(self, base: Base, sizes: Mapping[str, int], accepts: Accepts, seed: int = 0) -> Base | None:
        """Ordinary inputs of these sizes, if the source accepts them; indices and the like are drawn until it does."""
        shapes = base.shapes(sizes)
        if max(map(prod, shapes.values()), default=0) > most_elements():
            return None
        places = [spec for spec in self.specs if spec.name in self.limits.where]
        arrays = self._fill(shapes, dict.fromkeys(self._fillings, "random"), 0, seed)
        strategies: list[Values | None] = [None] if base.feeds or not places else []  # None: adapt those of the base
        strategies += _STRATEGIES if places else []
        for draw, values in enumerate(strategies):
            for at, spec in enumerate(places):
                rng = np.random.default_rng([self.seed, seed, draw, at])
                if values is None:
                    arrays[spec.name] = _adapted(base, spec.name, shapes[spec.name], sizes)
                else:
                    arrays[spec.name] = self._draw(spec, values, shapes, rng)
            feeds = {spec.name: arrays[spec.name] for spec in self.specs}  # in order, since labels number them
            if accepts(feeds):
                return replace(base, sizes=dict(sizes), feeds=feeds)
        return None

    def _draw(
        self, spec: InputSpec, values: Values, shapes: Mapping[str, tuple[int, ...]], rng: np.random.Generator
    ) -> Array:
        """Values that fit the role of an input, such as indices over their whole range; without one, small numbers."""
        role, shape = self.limits.roles.get(spec.name), shapes[spec.name]
        if role is not None and values == "random":
            data_shape = shapes.get(role.data, self.limits.constant_shapes.get(role.data))
            values_of_role = role.values(data_shape, shape, rng, self.limits.constants)
            if values_of_role is not None:
                # numpy returns scalars for rank 0
                return np.asarray(values_of_role, helper.tensor_dtype_to_np_dtype(spec.element_type))
        return random_array(spec.element_type, shape, values, rng)

    @cached_property
    def _fillings(self) -> dict[str, Filling]:
        return {spec.name: Filling(spec, self.limits) for spec in self.specs if spec.name not in self.limits.where}

    def _fill(self, shapes: Mapping[str, tuple[int, ...]], kinds: Mapping[str, str], *seed: int) -> dict[str, Array]:
        """Values of these kinds for the inputs that hold data, by name."""
        rng = np.random.default_rng([self.seed, *seed])
        return {name: filling.values(kinds[name], shapes[name], rng) for name, filling in self._fillings.items()}


def _adapted(base: Base, name: str, shape: tuple[int, ...], sizes: Mapping[str, int]) -> Array:
    """Indices, a shape or a count of the base, with its sizes replaced by the new ones."""
    value, new_sizes = base.feeds[name], {size: sizes[dim] for dim, size in base.sizes.items()}
    if value.dtype.kind in "iu" and value.size <= _LONGEST:
        resized = [new_sizes.get(item, item) for item in value.ravel().tolist()]
        value = np.array(resized, value.dtype).reshape(value.shape)
    return value if value.shape == shape else np.resize(value, shape).astype(value.dtype)


def _sizes_of_others(specs: Sequence[InputSpec]) -> Iterator[dict[str, int]]:
    """Values for free sizes: what each other input of the same rank declares along the same axes."""
    for other in specs:
        sizes: dict[str, int] = {}
        for spec in specs:
            if len(spec.dims or ()) == len(other.dims or ()):
                pairs = zip(spec.dims or (), other.dims or (), strict=True)
                axes = [(dim or f"axis {at}", size) for at, (dim, size) in enumerate(pairs) if isinstance(size, int)]
                sizes |= {dim: size for dim, size in axes if isinstance(dim, str)}
        if sizes:
            yield sizes
