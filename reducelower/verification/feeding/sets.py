"""The sets of values that both sides of a region are run on: those of the model, others of each kind, and other sizes.

Sizes are those that a run of the model shows, or else some that the source takes; smaller where nothing rests on them,
and 0, 1 and others in the place of each. Values are of every kind that the types have, in one operand at a time as
well, and in rows that are alike.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from reducelower.numerics.measure import Array, is_float
from reducelower.types.known import Known
from reducelower.types.sizes import Size
from reducelower.verification.feeding.filling import FAR_DOWN, FAR_UP, Case, Filling
from reducelower.verification.feeding.limits import Limits
from reducelower.verification.feeding.nonempty import feeds_no_empty, never_zero
from reducelower.verification.inputs.made import STRATEGIES, InputSpec, Values, bindings, random_array
from reducelower.verification.regions.places import Dims, any_size
from reducelower.verification.running.memory import most_elements

__all__ = ["Accepts", "Sets", "is_large"]

_LARGE = 20_000  # elements; above, each kind of value costs more than it is likely to show
_MOST = 4_000_000  # elements, where a size lies beside a bound that is held
_MANY = 1000  # elements, of which some lie close to a step
_SOME = 48  # elements, so that every value of a kind is likely to be among them
_FEW = 8  # elements, for which kinds of several values are drawn again
_DRAWS = 3
_SMALL = 7
"""Sizes of a model above it are made smaller, where nothing rests on them."""
_WIDER = 300
"""A size that no type of eight bits holds."""
_MOST_WIDER = 2_000  # elements
_SIZES = 6  # that others are tried in the place of
_OF_CARRIED = 2
_RANKS = (2, 3, 1, 4, 0)  # of inputs whose rank is not known
_TRUTHS = 3  # bool inputs, tried in every combination
_ROWS = 500  # sets, to reach every row of a table
_NEXT = 4  # sizes that a window is tried along
_OVERLAPPING = 60  # sets of boxes, few of which overlap by as much as a constant says
_LONGEST = 8  # integers, among which there may be sizes
_DISTINCT = (3, 2, 5, 4, 7, 6)
_STRATEGIES: tuple[Values, ...] = (*STRATEGIES[:1] * 6, *STRATEGIES[1:])  # what is drawn may fit at another time

_ALONE = ("wide", "large", "small", "zeros", "negative", "NaN", "infinity")
_AGAIN = ("mixed", "halves", "infinity", "limits", "around constants", "strings of several")
_CARRIED = ("random", "mixed", "wide", "huge", "NaN", "infinity", "limits", "false", "true")
_MOVED = ("random", "mixed", "NaN", "infinity", "true")
_ORDINARY = ("random", "true")
_BESIDE = ("mixed", "wide", "negative", "off steps", "from tables", "between constants")
_SPECIAL = frozenset({"infinity", "NaN"})

Accepts = Callable[[Mapping[str, Any]], bool]


def is_large(specs: Sequence[InputSpec]) -> bool:
    """Whether the sizes that are declared make so many elements that fewer would show as much in less time."""
    return any(prod(dim for dim in spec.dims or () if isinstance(dim, int)) > _MANY for spec in specs)


@dataclass(frozen=True)
class _Base:
    """Inputs that the source takes: their sizes, free ones as symbols, and what they are."""

    dims: Mapping[str, Dims]
    sizes: Mapping[str, int]
    feeds: Mapping[str, Array]

    def shapes(self, sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        return {name: _shape(dims, sizes) for name, dims in self.dims.items()}

    @property
    def count(self) -> int:
        return max((value.size for value in self.feeds.values()), default=0)


@dataclass
class Sets:
    """The sets of values for one region or lemma.

    Attributes:
        specs: the inputs, with the sizes that are declared.
        limits: what may not be fed.
        seed: seed for random values.
        samples: what the inputs are in a run of the model, at some of the places.
        fixed: sizes on which the replacement may rest.
        known: what a rewrite rests on of the inputs, in sizes that have names.
        never_zero: the names of sizes that are never zero.
        others: declared sizes of regions that are alike, each of which is tried on ordinary values.
        static: whether the sizes are those that are declared.
        alone: whether nothing but the samples is fed.
        reached: inputs that were fed every index of the table that they are for.
    """

    specs: Sequence[InputSpec]
    limits: Limits
    seed: int
    samples: Sequence[Mapping[str, Array]] = ()
    fixed: Collection[int] = ()
    known: Mapping[str, Known] = field(default_factory=dict)
    never_zero: Collection[int] = ()
    others: Sequence[Sequence[Dims | None]] = ()
    static: bool = False
    alone: bool = False
    reached: set[str] = field(default_factory=set)

    def __call__(self, accepts: Accepts, suits: Accepts) -> Iterator[Case]:
        """One set after another that the source accepts; sizes other than those of the model suit both sides."""
        if not self.specs:
            yield Case("no inputs", {})
            return
        is_open = self.limits.open_to_special or self.limits.rounds_to_integers
        samples = [each for each in self.samples if not (is_open and _is_special(each)) and accepts(each)]
        for each in samples:
            is_special = _is_special(each)
            yield Case("values of the model", dict(each), is_special, is_special)
        if self.alone:
            return
        base = self._sized(samples[0], suits) if samples else self._found(self.specs, accepts, suits)
        if base is None:
            return
        yield from self._kinds(base)
        yield from self._truths(base)
        yield from self._alone(base)
        yield from self._rows(base)
        yield from self._tables(base, accepts)
        if self.known:
            yield from self._named_sizes(base, accepts)
        else:
            yield from self._places(base, accepts)
            yield from self._other_sizes(base, accepts)
        yield from self._declared(accepts)

    # Sizes to begin with

    def _sized(self, sample: Mapping[str, Array], suits: Accepts) -> _Base:
        """A sample with large sizes made smaller, or with more elements, if both sides take that."""
        dims, sizes = self._free(sample)
        base = _Base(dims, sizes, sample)
        large = sorted(dim for dim, size in sizes.items() if size > _SMALL)
        tried: list[dict[str, int]] = []
        if large and base.count > _LARGE // 40:
            tried = [sizes | {dim: min(sizes[dim], _SMALL + 2 * at) for at, dim in enumerate(large)}]
        elif base.count < _SOME:
            more = ({dim: size * factor for dim, size in sizes.items()} for factor in range(2, _SOME + 1))
            tried = [each for each in more if _SOME <= _count(base, each) <= _LARGE][:1]
            alone = ({dim: size * (_SOME // max(base.count, 1) + 1)} for dim, size in sizes.items())
            tried += [sizes | each for each in alone][:_DRAWS]
        found = (self._at(base, each, suits) for each in tried if not self.known)
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

    def _found(self, specs: Sequence[InputSpec], accepts: Accepts, suits: Accepts) -> _Base | None:
        """Inputs that the source takes, of sizes that are made up; small ones, if both sides take them."""
        vectors = self.limits.vectors
        specs = [replace(spec, dims=spec.dims or (None,)) if spec.name in vectors else spec for spec in specs]
        for ranked in self._ranked(specs):
            if is_large(ranked) and not self.static:
                smaller = [replace(spec, dims=any_size(spec.dims, self.limits.sizes)) for spec in ranked]
                if (found := self._first(smaller, suits)) is not None:
                    return found
            if (found := self._first(ranked, accepts)) is not None:
                return found
        return None

    def _ranked(self, specs: Sequence[InputSpec]) -> Iterator[list[InputSpec]]:
        """The inputs with ranks for those that have none, first that of the others."""
        known = [len(spec.dims) for spec in specs if spec.dims is not None]
        ranks = list(dict.fromkeys([*sorted(set(known), key=known.count, reverse=True), *_RANKS]))
        if 0 < len(known) < len(specs) and not self.limits.takes_any:
            # Some kernels end the process on another rank than theirs, which is most often that of their other inputs.
            ranks = [rank for rank in ranks if 2 * known.count(rank) > len(known)]
        for rank in ranks if len(known) < len(specs) else ranks[:1]:
            yield [spec if spec.dims is not None else replace(spec, dims=(None,) * rank) for spec in specs]

    def _first(self, specs: Sequence[InputSpec], accepts: Accepts) -> _Base | None:
        dims: dict[str, Dims] = {
            spec.name: tuple(f"axis {at}" if dim is None else dim for at, dim in enumerate(spec.dims or ()))
            for spec in specs
        }
        empty = _Base(dims, {}, {})
        most = max(_LARGE * 50, _count(empty, dict.fromkeys(next(bindings(specs)), 1)))
        for sizes in self._candidates(specs, empty):
            fitting = {name: max(size, self.limits.least) for name, size in sizes.items()}
            if _count(empty, fitting) <= most and (found := self._at(empty, fitting, accepts)) is not None:
                return found
        return None

    def _candidates(self, specs: Sequence[InputSpec], empty: _Base) -> Iterator[dict[str, int]]:
        """Sizes for free dimensions: many elements, distinct ones, one of them 1, like others that are declared."""
        ladder = list(bindings(specs))
        first = ladder[0]
        for factor in range(2, _SOME + 1):
            more = {name: size * factor for name, size in first.items()}
            if _count(empty, more) >= _SOME > _count(empty, first):
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
            if 1 < size <= _LARGE and first:
                yield dict.fromkeys(first, size)
                yield from ({**dict.fromkeys(first, 1), name: size} for name in first)

    def _at(self, base: _Base, sizes: Mapping[str, int], accepts: Accepts, seed: int = 0) -> _Base | None:
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
            if accepts(found):
                return replace(base, sizes=dict(sizes), feeds=found)
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

    # Values

    @cached_property
    def _fillings(self) -> dict[str, Filling]:
        return {spec.name: Filling.of(spec, self.limits) for spec in self.specs if spec.name not in self.limits.where}

    def _filled(self, shapes: Mapping[str, tuple[int, ...]], kinds: Mapping[str, str], *seed: int) -> dict[str, Array]:
        """Values of kinds, by name, for inputs that do not say where."""
        return {
            name: filling.values(kinds[name], shapes[name], (self.seed, *seed, at))
            for at, (name, filling) in enumerate(self._fillings.items())
        }

    def _case(self, base: _Base, label: str, kinds: Mapping[str, str], *seed: int) -> Case:
        shapes = {name: value.shape for name, value in base.feeds.items()}
        told = set(kinds.values())
        return Case(
            f"{label}, {[list(shape) for shape in shapes.values()]}",
            {**base.feeds, **self._filled(shapes, kinds, *seed)},
            not told.isdisjoint(_SPECIAL),
            any(map(Filling.is_far, told)),
        )

    def _kinds(self, base: _Base) -> Iterator[Case]:
        fillings = self._fillings
        kinds = list(dict.fromkeys(kind for filling in fillings.values() for kind in filling.kinds))
        count = max((base.feeds[name].size for name in fillings), default=0)
        if self.limits.is_carried or count > _LARGE:
            kinds = [kind for kind in kinds if kind in _CARRIED]
        if self.limits.only_moves:
            kinds = [kind for kind in kinds if kind in _MOVED]
        elif count < _FEW:
            kinds += [kind for kind in kinds if kind in _AGAIN] * _DRAWS
        if self.limits.open_to_special == "NonMaxSuppression":
            kinds += ["positive"] * _OVERLAPPING
        for at, kind in enumerate(kinds):
            if kind not in (FAR_UP, FAR_DOWN):
                yield self._case(base, f"{kind} values", dict.fromkeys(fillings, kind), 1, at)

    def _truths(self, base: _Base) -> Iterator[Case]:
        """Every combination of truth values of the bool inputs: a mask may hide the few elements that are special."""
        bools = [spec.name for spec in self.specs if spec.element_type == TensorProto.BOOL][:_TRUTHS]
        kinds = {kind for filling in self._fillings.values() for kind in filling.kinds}
        for number in range(2 ** len(bools) if bools else 0):
            truths = {name: "true" if number >> at & 1 else "false" for at, name in enumerate(bools)}
            for at, kind in enumerate(kind for kind in ("random", "wide", "NaN", "infinity") if kind in kinds):
                label = f"{kind} values, {', '.join(f'{name} {truth}' for name, truth in truths.items())}"
                yield self._case(base, label, dict.fromkeys(self._fillings, kind) | truths, 2, number, at)

    def _alone(self, base: _Base) -> Iterator[Case]:
        """Kinds of values in one operand, with ordinary ones in the others, or far smaller ones beside far larger."""
        fillings = self._fillings
        if len(self.specs) < 2 or self.limits.only_moves:
            return
        for at, (name, filling) in enumerate(fillings.items()):
            for number, kind in enumerate(kind for kind in _ALONE if kind in filling.kinds):
                kinds = dict.fromkeys(fillings, "random") | {name: kind}
                yield self._case(base, f"{kind} values in {name!r}", kinds, 3, at, number)
        far = [name for name, filling in fillings.items() if FAR_UP in filling.kinds]
        for at, name in enumerate(far[:_TRUTHS] if len(far) > 1 else ()):
            for own, others in ((FAR_UP, FAR_DOWN), (FAR_DOWN, FAR_UP)):
                kinds = dict.fromkeys(fillings, "random") | dict.fromkeys(far, others) | {name: own}
                yield self._case(base, f"{name!r} {own} and others {others}", kinds, 4, at)

    def _rows(self, base: _Base) -> Iterator[Case]:
        """Rows of one value each, of several magnitudes, and rows at an end of the range beside ordinary ones."""
        fillings = self._fillings
        floats = [name for name in fillings if is_float(base.feeds[name]) and base.feeds[name].ndim]
        for at, how in enumerate(("alike", "scaled", "at the end") if floats and not self.limits.only_moves else ()):
            rng = np.random.default_rng([self.seed, 5, at])
            case = self._case(base, f"rows {how}", dict.fromkeys(fillings, "random"), 5, at)
            for name in floats:
                case.feeds[name] = self._row(name, base.feeds[name], how, rng)
            is_special = how == "at the end" and any(np.isinf(case.feeds[name].astype(float)).any() for name in floats)
            yield replace(case, is_special=is_special, is_far=is_special)

    def _row(self, name: str, like: Array, how: str, rng: np.random.Generator) -> Array:
        drawn = rng.standard_normal(like.shape)
        if how == "alike":
            # Means of halves are exact, so that a variance of zero is zero.
            drawn = np.broadcast_to(np.round(2 * drawn[..., :1]) / 2, like.shape)
        elif how == "scaled":
            drawn = drawn * 10.0 ** rng.integers(-8, 1, (*like.shape[:-1], 1))
        elif self._fillings[name].takes_special and not self.limits.rounds_to_integers:
            drawn = np.where(rng.random((*like.shape[:-1], 1)) < 0.4, -np.inf, drawn)
        if name in self.limits.not_negative:
            drawn = np.abs(np.where(np.isinf(drawn), 0, drawn))
        if name in self.limits.divisors:
            drawn = np.where(np.isinf(drawn) | (drawn == 0), 1, drawn)
        return np.asarray(drawn).astype(like.dtype)

    # Where and how large

    def _tables(self, base: _Base, accepts: Accepts) -> Iterator[Case]:
        """Every index of the tables that the region holds, as many at a time as an input takes."""
        for name in base.feeds.keys() & self.limits.where:
            rows, value = self.limits.table(name) or 0, base.feeds[name]
            if not 0 < rows <= _ROWS * value.size:
                continue
            self.reached.add(name)
            for start in range(0, rows, value.size):
                indices = np.arange(start, start + value.size) % rows
                feeds = {**base.feeds, name: indices.reshape(value.shape).astype(value.dtype)}
                if accepts(feeds):
                    yield Case(f"indices from {start}", feeds)

    def _places(self, base: _Base, accepts: Accepts) -> Iterator[Case]:
        """Other values of operands that say where or how much."""
        shapes = {name: value.shape for name, value in base.feeds.items()}
        told = [spec for spec in self.specs if spec.name in self.limits.where and spec.name in self.limits.roles]
        draws = 2 * _DRAWS if base.count >= _FEW else 8 * _DRAWS
        for draw in range(draws if told else 0):
            rng = np.random.default_rng([self.seed, 6, draw])
            case = self._case(base, "other places", dict.fromkeys(self._fillings, "random"), 6, draw)
            case.feeds.update((spec.name, self._drawn(spec, "random", shapes, rng)) for spec in told)
            if accepts(case.feeds):
                yield case

    def _other_sizes(self, base: _Base, accepts: Accepts) -> Iterator[Case]:
        """Other sizes: 1, one more, 0, those beside what is held, in the place of each, if the source takes them."""
        seen = {tuple(base.sizes.values())}
        tried = self._sizes_of_carried(base) if self.limits.is_carried else self._all_sizes(base)
        for at, (sizes, most) in enumerate(tried):
            key = tuple(sizes.values())
            if key in seen or _count(base, sizes) > most:
                continue
            seen.add(key)
            found = self._at(base, sizes, accepts, at)
            if found is None:
                continue
            yield Case(f"random values, {[list(value.shape) for value in found.feeds.values()]}", dict(found.feeds))
            beside: tuple[str, ...] = _BESIDE if self.limits.has_steps or most == _MOST else () if at else ("mixed",)
            beside += ("random",) * (_DRAWS if most == _MOST else 0)  # each row of a table is to be taken
            kinds = {kind for filling in self._fillings.values() for kind in filling.kinds}
            is_plain = 0 in key or self.limits.only_moves or found.count > _LARGE
            for number, kind in enumerate(() if is_plain else beside):
                if kind in kinds:
                    yield self._case(found, f"{kind} values", dict.fromkeys(self._fillings, kind), 7, at, number)

    def _sizes_of_carried(self, base: _Base) -> Iterator[tuple[dict[str, int], int]]:
        for name, size in [*base.sizes.items()][:_OF_CARRIED]:
            yield from (({**base.sizes, name: to}, _MOST_WIDER) for to in (size + 1, *self._zeros([name])))

    def _all_sizes(self, base: _Base) -> Iterator[tuple[dict[str, int], int]]:
        """Sizes, and how many elements an input may have there."""
        sizes, names = dict(base.sizes), list(base.sizes)
        if not names:
            return
        if self.limits.has_steps:
            many = dict.fromkeys(names, max(2, round(_MANY ** (1 / len(names)))))
            yield many, _LARGE
        for step in range(1, min(self.limits.least, _NEXT) + 1):
            yield {name: max(size, self.limits.least) + step for name, size in sizes.items()}, _LARGE
        for name in names[:_SIZES]:
            for to in (1, sizes[name] + 1, *self._zeros([name])):
                yield {**sizes, name: to}, _LARGE
            yield {**sizes, name: _WIDER}, _MOST_WIDER
        yield from ((dict.fromkeys(names, to), _LARGE) for to in (1, 2))
        yield from ((dict.fromkeys(names, to), _MOST) for to in self.limits.rows)
        if self._zeros(names):
            yield dict.fromkeys(names, 0), _LARGE
        for to in sorted({bound + step for bound in self.limits.bounds for step in (-1, 0, 1, 2)}):
            everywhere = dict.fromkeys(names, to)
            if _count(base, everywhere) <= _MOST // 16:
                yield everywhere, _MOST
            else:
                yield from (({**dict.fromkeys(names, other), name: to}, _MOST) for name in names for other in (2, 1))

    def _zeros(self, names: Collection[str]) -> tuple[int, ...]:
        """A size of zero for these names, if empty tensors are fed."""
        fed = self.limits.takes_empty and not feeds_no_empty()
        return (0,) if fed and never_zero().isdisjoint(names) else ()

    def _declared(self, accepts: Accepts) -> Iterator[Case]:
        """Ordinary values at the sizes that are declared, here and of regions that are alike."""
        own = [spec.dims for spec in self.specs]
        is_smaller = not self.samples and is_large(self.specs) and not self.static
        for dims in ([own] if is_smaller else []) + [list(each) for each in self.others]:
            specs = [replace(spec, dims=each) for spec, each in zip(self.specs, dims, strict=True)]
            found = next(filter(None, (self._first(ranked, accepts) for ranked in self._ranked(specs))), None)
            for at, kind in enumerate(_ORDINARY if found is not None else ()):
                assert found is not None
                yield self._case(found, f"{kind} values", dict.fromkeys(self._fillings, kind), 8, at)

    def _named_sizes(self, base: _Base, accepts: Accepts) -> Iterator[Case]:
        """Other sizes, each name with one: different ones, all 1, and 0 for each that may be zero."""
        atoms = sorted({atom for known in self.known.values() for atom in known.atoms})
        tried = [[_DISTINCT[(at + shift) % len(_DISTINCT)] for at in range(len(atoms))] for shift in range(2)]
        tried += [[1] * len(atoms)]
        for zero, atom in enumerate(atoms[:_SIZES] if self._zeros(()) else ()):
            if atom not in self.never_zero:
                tried.append([0 if at == zero else size for at, size in enumerate(tried[0])])
        for at, sizes in enumerate(tried if atoms else ()):
            sample = self._of_sizes(base.feeds, dict(zip(atoms, sizes, strict=True)))
            if sample is not None:
                shapes = {name: value.shape for name, value in sample.items()}
                feeds = {**sample, **self._filled(shapes, dict.fromkeys(self._fillings, "random"), 9, at)}
                if accepts(feeds):
                    yield Case(f"named sizes {sizes}, {[list(shape) for shape in shapes.values()]}", feeds)

    def _of_sizes(self, sample: Mapping[str, Array], sizes: Mapping[int, int]) -> dict[str, Array] | None:
        """A sample at these sizes, by name; None where one would be negative."""
        found = dict(sample)
        for name, known in self.known.items():
            value = sample[name]
            shape = value.shape if known.shape is None else tuple(_number(size, sizes) for size in known.shape)
            if min(shape, default=0) < 0:
                return None
            value = value if shape == value.shape else np.resize(value, shape).astype(value.dtype)
            if known.elements is not None and None not in known.elements and len(known.elements) == value.size:
                elements = [_number(size, sizes) for size in known.elements if size is not None]
                value = np.array(elements, value.dtype).reshape(value.shape)
            found[name] = value
        return found


def _is_special(feeds: Mapping[str, Array]) -> bool:
    """Whether NaN or an infinity is among values."""
    return any(is_float(value) and not np.isfinite(value.astype(np.float64)).all() for value in feeds.values())


def _changed(base: _Base, name: str, shape: tuple[int, ...], sizes: Mapping[str, int]) -> Array:
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


def _count(base: _Base, sizes: Mapping[str, int]) -> int:
    """Elements of the largest input."""
    return max((prod(shape) for shape in base.shapes(sizes).values()), default=0)


def _number(size: Size, sizes: Mapping[int, int]) -> int:
    """What a size is where those that have names are known."""
    return sum(factor * prod(sizes[atom] for atom in monomial) for monomial, factor in size.terms)
