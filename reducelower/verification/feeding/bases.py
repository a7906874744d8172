"""Finds base inputs that the source accepts: from a run of the model, resized, or made up.

Sizes come from the run, reduced where both sides accept that and nothing depends on them. Without a run, sizes are
tried until the source accepts some. Indices, shapes and counts are adapted to the sizes, or drawn until it accepts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from reducelower.numerics.measure import Array
from reducelower.verification.feeding.filling import Filling
from reducelower.verification.feeding.limits import Limits
from reducelower.verification.feeding.sizes import LARGE, SOME, Base, of_region
from reducelower.verification.inputs.declared import InputSpec, named, names_in, related
from reducelower.verification.running.conditions import conditions
from reducelower.verification.running.memory import most_elements

__all__ = ["DRAWS", "Accepts", "Bases"]

DRAWS = 3
_SMALL = 7
"""Larger sizes from the run are reduced, if nothing depends on them."""
_SMALLER = (_SMALL, 64, 1024)  # upper bounds to try, smallest first: a window may be larger
_LONGEST = 8  # elements of an integer input that may hold sizes
# To try in this order, since a model may reject some: indices out of range, divisions by zero, shapes.
_STRATEGIES = (*("random",) * 12, "small", "zeros", "ones")
_FEW = _STRATEGIES[-4:]
"""Of many values one draw is like another; beside inputs that were accepted, a few others tell."""

Accepts = Callable[[Mapping[str, Any]], bool]


@dataclass
class Bases:
    """Searches for inputs that the source accepts.

    Attributes:
        specs: the inputs, with their declared sizes.
        limits: what may not be fed.
        samples: inputs captured in a run of the model, one for each of some of the sites.
        fixed: sizes that the replacement may depend on.
        rests_on_names: whether the rewrite depends on which sizes share a name, so that only the samples' sizes fit.
    """

    specs: Sequence[InputSpec]
    limits: Limits
    samples: Sequence[Mapping[str, Array]] = ()
    fixed: Collection[int] = ()
    rests_on_names: bool = False

    def _from_sample(self, sample: Mapping[str, Array], suits: Accepts) -> Base:
        """A sample with its large sizes reduced, or with more elements, if both sides accept that."""
        base = self._free(sample)
        resized = (self.at(base, each, suits) for each in _resized(base) if not self.rests_on_names)
        return next(filter(None, resized), base)

    def _free(self, sample: Mapping[str, Array]) -> Base:
        """A sample whose sizes are symbols where nothing depends on them; what was not declared equal may be so.

        A size of which nothing is known is that of another input that is as large in the sample.
        """
        dims: dict[str, tuple[int | str, ...]] = {}
        sizes: dict[str, int] = {}
        # Of pictures of stated sizes, smaller ones are tried too.
        least_free = _SMALL if max(value.size for value in sample.values()) > LARGE else math.inf
        declared = {spec.name: spec.dims or (None,) * sample[spec.name].ndim for spec in self.specs}
        pairs = (
            (dim, size) for name, each in declared.items() for dim, size in zip(each, sample[name].shape, strict=True)
        )
        known = {size: dim for dim, size in pairs if dim is not None}
        for name, each in declared.items():
            meant = [
                known.get(size) if dim is None else dim for dim, size in zip(each, sample[name].shape, strict=True)
            ]
            dims[name] = tuple(
                size if (isinstance(dim, int) and dim <= least_free) or size in self.fixed else f"{dim} {size}"
                for dim, size in zip(meant, sample[name].shape, strict=True)
            )
            sizes |= {
                dim: size for dim, size in zip(dims[name], sample[name].shape, strict=True) if isinstance(dim, str)
            }
        return Base(dims, sizes, sample)

    def _search(self, specs: Sequence[InputSpec], accepts: Accepts) -> Base | None:
        """Inputs that the source accepts, at declared or made-up sizes."""
        empty = Base(named(specs), {}, {})
        most = max(LARGE * 50, empty.count(dict.fromkeys(names_in(empty.dims), 1)))
        tried = (each for each in of_region(specs, empty.dims, self.limits) if empty.count(each) <= most)
        return next(filter(None, (self.at(empty, sizes, accepts) for sizes in tried)), None)

    def at(self, base: Base, sizes: Mapping[str, int], accepts: Accepts, seed: int = 0) -> Base | None:
        """Ordinary inputs of these sizes, if the source accepts them; indices and the like are drawn until it does."""
        sizes = related(sizes)
        shapes = base.shapes(sizes)
        if max(map(prod, shapes.values()), default=0) > most_elements():
            return None
        data = self._fill(self._data, shapes, {}, 0, seed)
        for places in self._placed(base, shapes, sizes, seed):
            feeds = {
                spec.name: {**data, **places}[spec.name] for spec in self.specs
            }  # in order, since labels number them
            if accepts(feeds):
                return replace(base, sizes=dict(sizes), feeds=feeds)
        return None

    def _placed(
        self, base: Base, shapes: Mapping[str, tuple[int, ...]], sizes: Mapping[str, int], seed: int
    ) -> Iterator[dict[str, Array]]:
        """Values for inputs that say where or how much: those of the base, adapted to the sizes, then others."""
        if base.feeds or not self._places:
            yield {name: _adapted(base, name, shapes[name], sizes) for name in self._places}
        strategies = _FEW if base.feeds or base.count(sizes) > LARGE else _STRATEGIES
        for draw, kind in enumerate(strategies if self._places else ()):
            yield self._fill(self._places, shapes, dict.fromkeys(self._places, kind), seed, draw)

    @cached_property
    def _places(self) -> list[str]:
        """The inputs that say where or how much."""
        return [spec.name for spec in self.specs if spec.name in self.limits.where]

    @cached_property
    def _data(self) -> list[str]:
        """The inputs that hold data."""
        return [spec.name for spec in self.specs if spec.name not in self.limits.where]

    @cached_property
    def _fillings(self) -> dict[str, Filling]:
        return {spec.name: Filling(spec, self.limits) for spec in self.specs}

    def _fill(
        self, names: Collection[str], shapes: Mapping[str, tuple[int, ...]], kinds: Mapping[str, str], *seed: int
    ) -> dict[str, Array]:
        """Values for some inputs by name; random ones where no kind is given."""
        rng = np.random.default_rng([conditions().seed, *seed])
        return {
            name: self._fillings[name].values(kinds.get(name, "random"), shapes[name], rng, shapes) for name in names
        }


def _resized(base: Base) -> Iterator[dict[str, int]]:
    """Sizes for a base that has very many elements, or few."""
    sizes, large = base.sizes, sorted(dim for dim, size in base.sizes.items() if size > _SMALL)
    if large and base.count() > LARGE // 40:
        shrunk = [{dim: min(sizes[dim], most + 2 * at) for at, dim in enumerate(large)} for most in _SMALLER]
        # One size stays, such as the channels of grouped operators or a signal that a window has to fit into.
        shrunk += [shrunk[0] | {kept: sizes[kept]} for kept in large]
        yield from sorted(({**sizes, **each} for each in shrunk), key=base.count)
    elif base.count() < SOME:
        more = ({dim: size * factor for dim, size in sizes.items()} for factor in range(2, SOME + 1))
        yield from [each for each in more if SOME <= base.count(each) <= LARGE][:1]
        alone = ({**sizes, dim: size * (SOME // max(base.count(), 1) + 1)} for dim, size in sizes.items())
        yield from list(alone)[:DRAWS]


def _adapted(base: Base, name: str, shape: tuple[int, ...], sizes: Mapping[str, int]) -> Array:
    """Indices, a shape or a count of the base, with its sizes replaced by the new ones."""
    value, new_sizes = base.feeds[name], {size: sizes[dim] for dim, size in base.sizes.items()}
    if value.dtype.kind in "iu" and value.size <= _LONGEST:
        resized = [new_sizes.get(item, item) for item in value.ravel().tolist()]
        value = np.array(resized, value.dtype).reshape(value.shape)
    return value if value.shape == shape else np.resize(value, shape).astype(value.dtype)
