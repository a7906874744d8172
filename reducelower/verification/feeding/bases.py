"""Finds base inputs that the source accepts: from a run of the model, resized, or made up.

Sizes come from the run, reduced where both sides accept that and nothing depends on them. Without a run, sizes are
tried until the source accepts some. Indices, shapes and counts are adapted to the sizes, or drawn until it accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from onnx import helper

from reducelower.numerics.measure import Array
from reducelower.verification.feeding.filling import Filling
from reducelower.verification.feeding.limits import Limits
from reducelower.verification.feeding.sizes import LARGE, SOME, Base, of_region
from reducelower.verification.inputs.declared import InputSpec, Named, named, names_in
from reducelower.verification.running.memory import most_elements

__all__ = ["DRAWS", "Accepts", "Bases"]

DRAWS = 3
_SMALL = 7
"""Larger sizes from the run are reduced, if nothing depends on them."""
_SMALLER = (_SMALL, 64, 1024)  # upper bounds to try, smallest first: a window may be larger
_LONGEST = 8  # elements of an integer input that may hold sizes
# To try in this order, since a model may reject some: indices out of range, divisions by zero, shapes. Another random
# draw may fit.
_STRATEGIES = (*("random",) * 6, "small", "zeros", "ones")

Accepts = Callable[[Mapping[str, Any]], bool]


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
        elif base.count() < SOME:
            more = ({dim: size * factor for dim, size in sizes.items()} for factor in range(2, SOME + 1))
            tried = [each for each in more if SOME <= base.count(each) <= LARGE][:1]
            alone = ({dim: size * (SOME // max(base.count(), 1) + 1)} for dim, size in sizes.items())
            tried += [sizes | each for each in alone][:DRAWS]
        resized = (self.at(base, each, suits) for each in tried if not self.rests_on_names)
        return next(filter(None, resized), base)

    def _free(self, sample: Mapping[str, Array]) -> tuple[Named, dict[str, int]]:
        """The sizes of a sample, as symbols where nothing depends on them, and the value of each symbol."""
        seen: dict[object, set[int]] = {}
        shapes = {spec.name: sample[spec.name].shape for spec in self.specs}
        declared = {spec.name: spec.dims or (None,) * len(shapes[spec.name]) for spec in self.specs}
        for name, dims in declared.items():
            for dim, size in zip(dims, shapes[name], strict=True):
                seen.setdefault(dim, set()).add(size)

        def free(dim: int | str | None, size: int) -> int | str:
            if isinstance(dim, int) or size in self.fixed:
                return size
            # Equal sizes may be equal by chance.
            return dim if dim is not None and len(seen[dim]) == 1 else f"size {size}"

        found = {
            name: tuple(free(*each) for each in zip(dims, shapes[name], strict=True)) for name, dims in declared.items()
        }
        sizes = {
            dim: size
            for name, dims in found.items()
            for dim, size in zip(dims, shapes[name], strict=True)
            if isinstance(dim, str)
        }
        return found, sizes

    def _search(self, specs: Sequence[InputSpec], accepts: Accepts) -> Base | None:
        """Inputs that the source accepts, at declared or made-up sizes."""
        empty = Base(named(specs), {}, {})
        most = max(LARGE * 50, empty.count(dict.fromkeys(names_in(empty.dims), 1)))
        tried = (each for each in of_region(specs, empty.dims, self.limits) if empty.count(each) <= most)
        return next(filter(None, (self.at(empty, sizes, accepts) for sizes in tried)), None)

    def at(self, base: Base, sizes: Mapping[str, int], accepts: Accepts, seed: int = 0) -> Base | None:
        """Ordinary inputs of these sizes, if the source accepts them; indices and the like are drawn until it does."""
        shapes = base.shapes(sizes)
        if max(map(prod, shapes.values()), default=0) > most_elements():
            return None
        places = [spec for spec in self.specs if spec.name in self.limits.where]
        arrays = self._fill(shapes, dict.fromkeys(self._fillings, "random"), 0, seed)
        strategies: list[str | None] = [None] if base.feeds or not places else []  # None: adapt those of the base
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
        self, spec: InputSpec, values: str, shapes: Mapping[str, tuple[int, ...]], rng: np.random.Generator
    ) -> Array:
        """Values that fit the role of an input, such as indices over their whole range; without one, small numbers."""
        role, shape = self.limits.roles.get(spec.name), shapes[spec.name]
        if role is not None and values == "random":
            data_shape = shapes.get(role.data, self.limits.constant_shapes.get(role.data))
            values_of_role = role.values(data_shape, shape, rng, self.limits.constants)
            if values_of_role is not None:
                # numpy returns scalars for rank 0
                return np.asarray(values_of_role, helper.tensor_dtype_to_np_dtype(spec.element_type))
        return Filling(spec, Limits()).values(values, shape, rng)

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
