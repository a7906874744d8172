"""The sets of values that a lemma is tried on: those of one run of the model, and others of each kind at its sizes.

Sizes are those that the model's own run shows, smaller where nothing rests on them, and 0, 1 and one more in the place
of each. Values are of every kind that the types have, one operand at a time as well, and in rows that are alike.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from reducelower.numerics.measure import Array, is_float
from reducelower.types.known import Known
from reducelower.types.sizes import Size
from reducelower.verification.feeding.battery import Case
from reducelower.verification.feeding.filling import Filling
from reducelower.verification.feeding.limits import Limits
from reducelower.verification.feeding.values import Accepts
from reducelower.verification.inputs.made import InputSpec

__all__ = ["Sets"]

_LARGE = 7
"""Sizes above it are made smaller."""
_MOST = 4096  # elements of an operand, where sizes are free to be smaller
_SIZES = 5  # that others are tried in the place of
_MANY = 300
"""A size that no type of eight bits holds."""
_MOST_OF_MANY = 2_000  # elements
_VECTOR = 8
_DRAWS = 3  # of operands that say where
_FEW = 8  # elements, for which kinds of several values are drawn again
_ALONE = ("wide", "large", "small", "zeros", "negative", "NaN", "infinity")
_AGAIN = ("mixed", "halves", "infinity", "around constants")
_DISTINCT = (3, 2, 5, 4, 7, 6)
_SPECIAL = frozenset({"infinity", "NaN"})
_MOVED = ("random", "mixed", "NaN", "infinity")
_OFTEN = ("random", "true")


@dataclass
class Sets:
    """The sets of values for one lemma.

    Attributes:
        samples: what the operands were at some of its places, by name.
        fixed: sizes on which the lemma may rest.
        known: what a rewrite rests on of the operands, in sizes that have names.
        never_zero: the names of sizes that are never zero.
        limits: what may not be fed.
        seed: seed for random values.
    """

    samples: Sequence[Mapping[str, Array]]
    fixed: Collection[int]
    known: Mapping[str, Known]
    never_zero: Collection[int]
    limits: Limits
    seed: int

    def __call__(self, accepts: Accepts) -> Iterator[Case]:
        """One set after another that the source accepts."""
        first, *others = self.samples
        if not accepts(first):
            return
        yield Case("values of the model", dict(first))
        for sample in others:
            if accepts(sample):
                yield Case("values of the model at another place", dict(sample))
        base = self._smaller(first, accepts)
        yield from self._kinds(base)
        yield from self._alone(base)
        yield from self._rows(base)
        if self.known:
            yield from self._named_sizes(base, accepts)
        else:
            yield from self._places(base, accepts)
            yield from self._sizes(base, accepts)

    def _smaller(self, first: Mapping[str, Array], accepts: Accepts) -> Mapping[str, Array]:
        """The first sample with large sizes made smaller, if the source takes that."""
        sizes = sorted({size for value in first.values() for size in value.shape if size > _LARGE} - set(self.fixed))
        if self.known or not sizes or max(value.size for value in first.values()) <= _MOST // 8:
            return first
        to = {size: min(size, _LARGE + 2 * at) for at, size in enumerate(sizes)}
        found = self._resized(first, to)
        return found if accepts(found) else first

    def _resized(self, sample: Mapping[str, Array], to: Mapping[int, int]) -> dict[str, Array]:
        """A sample with some sizes replaced by others, also where an operand names them."""
        found = {}
        for name, value in sample.items():
            shape = tuple(to.get(size, size) for size in value.shape)
            changed = value if shape == value.shape else np.resize(value, shape).astype(value.dtype)
            if name in self.limits.where and value.dtype.kind in "iu" and value.size <= _VECTOR:
                changed = np.array([to.get(item, item) for item in changed.ravel().tolist()], value.dtype)
                changed = changed.reshape(shape)
            found[name] = changed
        return found

    # Values

    def _fillings(self, sample: Mapping[str, Array]) -> dict[str, Filling]:
        specs = [InputSpec(name, _type_of(value), value.shape) for name, value in sample.items()]
        return {spec.name: Filling.of(spec, self.limits) for spec in specs if spec.name not in self.limits.where}

    def _filled(
        self, sample: Mapping[str, Array], fillings: Mapping[str, Filling], kinds: Mapping[str, str], *seed: int
    ) -> dict[str, Any]:
        """A sample with values of kinds, by name; what says where stays as it is."""
        found = dict(sample)
        for at, (name, filling) in enumerate(fillings.items()):
            found[name] = filling.values(kinds[name], sample[name].shape, (self.seed, *seed, at))
        return found

    def _kinds(self, base: Mapping[str, Array]) -> Iterator[Case]:
        fillings = self._fillings(base)
        kinds = list(dict.fromkeys(kind for filling in fillings.values() for kind in filling.kinds))
        if self.limits.only_moves:
            kinds = [kind for kind in kinds if kind in _MOVED]
        elif max((base[name].size for name in fillings), default=0) < _FEW:
            kinds += [kind for kind in kinds if kind in _AGAIN] * _DRAWS
        for at, kind in enumerate(kinds):
            feeds = self._filled(base, fillings, dict.fromkeys(fillings, kind), at)
            yield Case(f"{kind} values, {_shapes(base)}", feeds, kind in _SPECIAL, Filling.is_far(kind))

    def _alone(self, base: Mapping[str, Array]) -> Iterator[Case]:
        """Kinds of values in one operand, with ordinary ones in the others."""
        fillings = self._fillings(base)
        bools = [name for name in fillings if base[name].dtype == np.bool_]
        for at, name in enumerate(fillings if len(fillings) > 1 and not self.limits.only_moves else ()):
            wanted = ("true", "false") if name in bools else _ALONE
            for number, kind in enumerate(kind for kind in wanted if kind in fillings[name].kinds):
                kinds = {other: kind if other == name else "random" for other in fillings}
                feeds = self._filled(base, fillings, kinds, 500 + at, number)
                yield Case(f"{kind} values in {name!r}", feeds, kind in _SPECIAL, Filling.is_far(kind))

    def _rows(self, base: Mapping[str, Array]) -> Iterator[Case]:
        """Rows of one value each, of several magnitudes, and rows at an end of the range beside ordinary ones."""
        fillings = self._fillings(base)
        floats = [name for name in fillings if is_float(base[name]) and base[name].ndim]
        if not floats or self.limits.only_moves:
            return
        for at, how in enumerate(("alike", "scaled", "at the end")):
            rng = np.random.default_rng([self.seed, 700, at])
            feeds = self._filled(base, fillings, dict.fromkeys(fillings, "random"), 700, at)
            for name in floats:
                feeds[name] = self._row(name, base[name], how, rng)
            is_special = how == "at the end" and any(np.isinf(feeds[name].astype(np.float64)).any() for name in floats)
            yield Case(f"rows {how}, {_shapes(base)}", feeds, is_special, is_special)

    def _row(self, name: str, like: Array, how: str, rng: np.random.Generator) -> Array:
        drawn = rng.standard_normal(like.shape)
        if how == "alike":
            drawn = np.broadcast_to(drawn[..., :1], like.shape)
        elif how == "scaled":
            drawn = drawn * 10.0 ** rng.integers(-8, 1, (*like.shape[:-1], 1))
        elif not self.limits.open_to_special and not self.limits.rounds_to_integers:
            drawn = np.where(rng.random((*like.shape[:-1], 1)) < 0.4, -np.inf, drawn)
        if name in self.limits.not_negative:
            drawn = np.abs(np.where(np.isinf(drawn), 0, drawn))
        return np.asarray(drawn).astype(like.dtype)

    # Where and how large

    def _places(self, base: Mapping[str, Array], accepts: Accepts) -> Iterator[Case]:
        """Other values of operands that say where or how much."""
        fillings = self._fillings(base)
        for draw in range(_DRAWS):
            rng = np.random.default_rng([self.seed, 800, draw])
            feeds = self._filled(base, fillings, dict.fromkeys(fillings, _OFTEN[0]), 800, draw)
            changed = False
            for name in base.keys() & self.limits.roles.keys() & self.limits.where:
                role = self.limits.roles[name]
                of = base[role.data].shape if role.data in base else self.limits.held.get(role.data)
                found = role.values(of, base[name].shape, rng, self.limits.constants)
                if found is not None:
                    feeds[name], changed = np.asarray(found, base[name].dtype), True
            if changed and accepts(feeds):
                yield Case(f"other places, {_shapes(base)}", feeds)

    def _sizes(self, base: Mapping[str, Array], accepts: Accepts) -> Iterator[Case]:
        """Other sizes: 1, one more, and 0 in the place of each, where the source takes them."""
        free = list(dict.fromkeys(size for value in base.values() for size in value.shape if size not in self.fixed))
        for at, size in enumerate(free[:_SIZES]):
            for to in (1, size + 1, _MANY, 0):
                if to == size or (to == 0 and not self.limits.takes_empty):
                    continue
                if to == _MANY and max(_count(value, size, to) for value in base.values()) > _MOST_OF_MANY:
                    continue
                sample = self._resized(base, {size: to})
                fillings = self._fillings(sample)
                feeds = self._filled(sample, fillings, dict.fromkeys(fillings, "random"), 900, at, to)
                if accepts(feeds):
                    yield Case(f"size {to} for {size}, {_shapes(sample)}", feeds)

    def _named_sizes(self, base: Mapping[str, Array], accepts: Accepts) -> Iterator[Case]:
        """Other sizes, each name with one: different ones, all 1, and 0 for each that may be zero."""
        atoms = sorted({atom for known in self.known.values() for atom in known.atoms})
        tried = [[_DISTINCT[(at + shift) % len(_DISTINCT)] for at in range(len(atoms))] for shift in range(2)]
        tried += [[1] * len(atoms)]
        for zero, atom in enumerate(atoms[:_SIZES] if self.limits.takes_empty else ()):
            if atom not in self.never_zero:
                tried.append([0 if at == zero else size for at, size in enumerate(tried[0])])
        for at, sizes in enumerate(tried if atoms else ()):
            sample = self._of_sizes(base, dict(zip(atoms, sizes, strict=True)))
            if sample is not None:
                fillings = self._fillings(sample)
                feeds = self._filled(sample, fillings, dict.fromkeys(fillings, "random"), 950, at)
                if accepts(feeds):
                    yield Case(f"named sizes {sizes}, {_shapes(sample)}", feeds)

    def _of_sizes(self, base: Mapping[str, Array], sizes: Mapping[int, int]) -> dict[str, Array] | None:
        """A sample at these sizes, by name; None where one would be negative."""
        found = dict(base)
        for name, known in self.known.items():
            value = base[name]
            shape = value.shape if known.shape is None else tuple(_number(size, sizes) for size in known.shape)
            if min(shape, default=0) < 0:
                return None
            value = value if shape == value.shape else np.resize(value, shape).astype(value.dtype)
            if known.elements is not None and None not in known.elements and len(known.elements) == value.size:
                elements = [_number(size, sizes) for size in known.elements if size is not None]
                value = np.array(elements, value.dtype).reshape(value.shape)
            found[name] = value
        return found


def _number(size: Size, sizes: Mapping[int, int]) -> int:
    """What a size is where those that have names are known."""
    return sum(factor * prod(sizes[atom] for atom in monomial) for monomial, factor in size.terms)


def _count(value: Array, size: int, to: int) -> int:
    """How many elements a value has with another size in the place of one."""
    return prod(to if own == size else own for own in value.shape)


def _shapes(sample: Mapping[str, Array]) -> str:
    return str([list(value.shape) for value in sample.values()])


def _type_of(value: Array) -> int:
    if value.dtype.kind in "OSUT":
        return TensorProto.STRING
    return helper.np_dtype_to_tensor_dtype(value.dtype)
