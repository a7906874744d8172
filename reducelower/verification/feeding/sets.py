"""The sets of values that both sides of a region are run on: those of the model, others of each kind, and other sizes.

Sizes are those that a run of the model shows, or else some that the source takes; smaller where nothing rests on them,
and 0, 1 and others in the place of each. Values are of every kind that the types have, in one operand at a time as
well, and in rows that are alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from onnx import TensorProto

from reducelower.numerics.measure import Array, holds_special, is_float
from reducelower.verification.feeding.bases import DRAWS, LARGE, MANY, Accepts, Base, Bases
from reducelower.verification.feeding.filling import FAR_DOWN, FAR_UP, Case
from reducelower.verification.regions.places import Dims

__all__ = ["Sets"]

_MOST = 4_000_000  # elements, where a size lies beside a bound that is held
_FEW = 8  # elements, for which kinds of several values are drawn again
_WIDER = 300
"""A size that no type of eight bits holds."""
_MOST_WIDER = 2_000  # elements
_SIZES = 6  # that others are tried in the place of
_TRUTHS = 3  # bool inputs, tried in every combination
_ROWS = 500  # sets, to reach every row of a table
_NEXT = 4  # sizes that a window is tried along
_OVERLAPPING = 60  # sets of boxes, few of which overlap by as much as a constant says
_FILLED = 400  # inputs, in one round of sets that vary each of some operands alone
_ALONE = ("wide", "large", "small", "zeros", "negative", "NaN", "infinity")
_AGAIN = ("mixed", "halves", "infinity", "limits", "around constants", "strings of several")
_OF_LARGE = ("random", "mixed", "wide", "huge", "NaN", "infinity", "limits", "false", "true")
_MOVED = ("random", "mixed", "NaN", "infinity", "true")
_ORDINARY = ("random", "true")
_BESIDE = ("mixed", "wide", "negative", "around constants", "off steps", "from tables", "between constants")
_SPECIAL = frozenset({"infinity", "NaN", "only NaN"})


@dataclass
class Sets(Bases):
    """The sets of values for one region or lemma.

    Attributes:
        others: declared sizes of regions that are alike, each of which is tried on ordinary values.
        alone: whether nothing but the samples is fed.
        reached: inputs that were fed every index of the table that they are for.
    """

    others: Sequence[Sequence[Dims | None]] = ()
    alone: bool = False
    reached: set[str] = field(default_factory=set)

    def __call__(self, accepts: Accepts, suits: Accepts) -> Iterator[Case]:
        """One set after another that the source accepts; sizes other than those of the model suit both sides."""
        if not self.specs:
            yield Case("no inputs", {})
            return
        is_open = self.limits.open_to_special or self.limits.rounds_to_integers
        samples = [each for each in self.samples if not (is_open and holds_special(each.values())) and accepts(each)]
        is_large = any(value.size > LARGE for each in samples[:1] for value in each.values())
        for each in samples[:1] if is_large else samples:
            is_special = holds_special(each.values())
            yield Case("values of the model", dict(each), is_special)
        if self.alone:
            return
        base = self._sized(samples[0], suits) if samples else self._found(self.specs, accepts)
        if base is None:
            return
        yield from self._kinds(base)
        yield from self._truths(base)
        yield from self._alone(base)
        yield from self._rows(base)
        yield from self._tables(base, accepts)
        if not self.rests_on_names:
            yield from self._places(base, accepts)
            yield from self._other_sizes(base, accepts)
        yield from self._declared(accepts)

    # Values

    def _case(self, base: Base, label: str, kinds: Mapping[str, str], *seed: int) -> Case:
        shapes = {name: value.shape for name, value in base.feeds.items()}
        told = set(kinds.values())
        return Case(
            f"{label}, {[list(shape) for shape in shapes.values()]}",
            {**base.feeds, **self._filled(shapes, kinds, *seed)},
            not told.isdisjoint(_SPECIAL),
        )

    def _kinds(self, base: Base) -> Iterator[Case]:
        fillings = self._fillings
        kinds = list(dict.fromkeys(kind for filling in fillings.values() for kind in filling.kinds))
        count = max((base.feeds[name].size for name in fillings), default=0)
        if count > LARGE:
            kinds = [kind for kind in kinds if kind in _OF_LARGE]
        if self.limits.only_moves:
            kinds = [kind for kind in kinds if kind in _MOVED]
        elif count < _FEW:
            kinds += [kind for kind in kinds if kind in _AGAIN] * DRAWS
        if self.limits.open_to_special == "NonMaxSuppression":
            kinds += ["positive"] * _OVERLAPPING
        for at, kind in enumerate(kinds):
            if kind not in (FAR_UP, FAR_DOWN):
                yield self._case(base, f"{kind} values", dict.fromkeys(fillings, kind), 1, at)

    def _truths(self, base: Base) -> Iterator[Case]:
        """Every combination of truth values of the bool inputs: a mask may hide the few elements that are special."""
        bools = [spec.name for spec in self.specs if spec.element_type == TensorProto.BOOL][:_TRUTHS]
        kinds = {kind for filling in self._fillings.values() for kind in filling.kinds}
        for number in range(2 ** len(bools) if bools else 0):
            truths = {name: "true" if number >> at & 1 else "false" for at, name in enumerate(bools)}
            for at, kind in enumerate(kind for kind in ("random", "wide", "NaN", "infinity") if kind in kinds):
                label = f"{kind} values, {', '.join(f'{name} {truth}' for name, truth in truths.items())}"
                yield self._case(base, label, dict.fromkeys(self._fillings, kind) | truths, 2, number, at)

    def _alone(self, base: Base) -> Iterator[Case]:
        """Kinds of values in one operand, with ordinary ones in the others, or far smaller ones beside far larger.

        Every set fills all operands: of very many, those varied are some, from the first to near the last.
        """
        fillings = self._fillings
        if len(self.specs) < 2 or self.limits.only_moves:
            return
        numbers = {spec.name: number for number, spec in enumerate(self.specs, 1)}
        varied = list(fillings.items())[:: max(1, math.ceil(len(fillings) ** 2 / _FILLED))]
        for at, (name, filling) in enumerate(varied):
            for number, kind in enumerate(kind for kind in _ALONE if kind in filling.kinds):
                kinds = dict.fromkeys(fillings, "random") | {name: kind}
                yield self._case(base, f"{kind} values in input {numbers[name]}", kinds, 3, at, number)
        far = [name for name, filling in fillings.items() if FAR_UP in filling.kinds]
        for at, name in enumerate(far[:_TRUTHS] if len(far) > 1 else ()):
            for own, others in ((FAR_UP, FAR_DOWN), (FAR_DOWN, FAR_UP)):
                kinds = dict.fromkeys(fillings, "random") | dict.fromkeys(far, others) | {name: own}
                yield self._case(base, f"input {numbers[name]} {own} and others {others}", kinds, 4, at)

    def _rows(self, base: Base) -> Iterator[Case]:
        """Rows of one value each, of several magnitudes, and rows at an end of the range beside ordinary ones."""
        fillings = self._fillings
        floats = [name for name in fillings if is_float(base.feeds[name]) and base.feeds[name].ndim]
        for at, how in enumerate(("alike", "scaled", "at the end") if floats and not self.limits.only_moves else ()):
            rng = np.random.default_rng([self.seed, 5, at])
            case = self._case(base, f"rows {how}", dict.fromkeys(fillings, "random"), 5, at)
            for name in floats:
                case.feeds[name] = self._row(name, base.feeds[name], how, rng)
            is_special = how == "at the end" and any(np.isinf(case.feeds[name].astype(float)).any() for name in floats)
            yield replace(case, is_special=is_special)

    def _row(self, name: str, like: Array, how: str, rng: np.random.Generator) -> Array:
        drawn = rng.standard_normal(like.shape)
        if how == "alike":
            # Means of halves are exact, so that a variance of zero is zero.
            drawn = np.broadcast_to(np.round(2 * drawn[..., :1]) / 2, like.shape)
        elif how == "scaled":
            drawn = drawn * 10.0 ** rng.integers(-8, 1, (*like.shape[:-1], 1))
        elif not self.limits.open_to_special and not self.limits.rounds_to_integers:
            drawn = np.where(rng.random((*like.shape[:-1], 1)) < 0.4, -np.inf, drawn)
        if name in self.limits.divisors:
            drawn = np.where(np.isinf(drawn) | (drawn == 0), 1, drawn)
        return np.asarray(drawn).astype(like.dtype)

    # Where and how large

    def _tables(self, base: Base, accepts: Accepts) -> Iterator[Case]:
        """Every index of the tables that the region holds, as many at a time as an input takes."""
        for name in (name for name in base.feeds if name in self.limits.where):  # in this order, which a budget may end
            rows, value = self.limits.table(name) or 0, base.feeds[name]
            if not 0 < rows <= _ROWS * value.size:
                continue
            self.reached.add(name)
            for start in range(0, rows, value.size):
                indices = np.arange(start, start + value.size) % rows
                feeds = {**base.feeds, name: indices.reshape(value.shape).astype(value.dtype)}
                if accepts(feeds):
                    yield Case(f"indices from {start}", feeds)

    def _places(self, base: Base, accepts: Accepts) -> Iterator[Case]:
        """Other values of operands that say where or how much."""
        shapes = {name: value.shape for name, value in base.feeds.items()}
        told = [spec for spec in self.specs if spec.name in self.limits.where and spec.name in self.limits.roles]
        draws = 2 * DRAWS if base.count() >= _FEW else 8 * DRAWS
        for draw in range(draws if told else 0):
            rng = np.random.default_rng([self.seed, 6, draw])
            case = self._case(base, "other places", dict.fromkeys(self._fillings, "random"), 6, draw)
            case.feeds.update((spec.name, self._drawn(spec, "random", shapes, rng)) for spec in told)
            if accepts(case.feeds):
                yield case

    def _other_sizes(self, base: Base, accepts: Accepts) -> Iterator[Case]:
        """Other sizes: 1, one more, 0, those beside what is held, in the place of each, if the source takes them."""
        seen = {tuple(base.sizes.values())}
        for at, (sizes, most) in enumerate(self._all_sizes(base)):
            key = tuple(sizes.values())
            if key in seen or base.count(sizes) > most:
                continue
            seen.add(key)
            found = self._at(base, sizes, accepts, at)
            if found is None:
                continue
            yield Case(f"random values, {[list(value.shape) for value in found.feeds.values()]}", dict(found.feeds))
            has_many = most == _MOST or (self.limits.has_steps and not at)
            beside: tuple[str, ...] = _BESIDE if has_many else () if at else ("mixed",)
            beside += ("random",) * (DRAWS if most == _MOST else 0)  # each row of a table is to be taken
            kinds = {kind for filling in self._fillings.values() for kind in filling.kinds}
            is_plain = 0 in key or self.limits.only_moves or found.count() > LARGE
            for number, kind in enumerate(() if is_plain else beside):
                if kind in kinds:
                    yield self._case(found, f"{kind} values", dict.fromkeys(self._fillings, kind), 7, at, number)

    def _all_sizes(self, base: Base) -> Iterator[tuple[dict[str, int], int]]:
        """Sizes, and how many elements an input may have there."""
        sizes, names = dict(base.sizes), list(base.sizes)
        if not names:
            return
        if self.limits.has_steps:
            many = dict.fromkeys(names, max(2, round(MANY ** (1 / len(names)))))
            yield many, LARGE
        for step in range(1, min(self.limits.least, _NEXT) + 1):
            yield {name: max(size, self.limits.least) + step for name, size in sizes.items()}, LARGE
        for name in names[:_SIZES]:
            for to in (1, sizes[name] + 1, *self._zero()):
                yield {**sizes, name: to}, LARGE
            yield {**sizes, name: _WIDER}, _MOST_WIDER
        yield from ((dict.fromkeys(names, to), LARGE) for to in (1, 2))
        yield from ((dict.fromkeys(names, to), _MOST) for to in self.limits.rows)
        if self._zero():
            yield dict.fromkeys(names, 0), LARGE
        for to in sorted({bound + step for bound in self.limits.bounds for step in (-1, 0, 1, 2)}):
            everywhere = dict.fromkeys(names, to)
            if base.count(everywhere) <= _MOST // 16:
                yield everywhere, _MOST
            else:
                yield from (({**dict.fromkeys(names, other), name: to}, _MOST) for name in names for other in (2, 1))

    def _zero(self) -> tuple[int, ...]:
        """A size of zero, if empty tensors are fed."""
        return (0,) if self.limits.takes_empty else ()

    def _declared(self, accepts: Accepts) -> Iterator[Case]:
        """Ordinary values at the sizes that are declared of regions that are alike."""
        for dims in self.others:
            specs = [replace(spec, dims=each) for spec, each in zip(self.specs, dims, strict=True)]
            found = self._found(specs, accepts)
            for at, kind in enumerate(_ORDINARY if found is not None else ()):
                assert found is not None
                yield self._case(found, f"{kind} values", dict.fromkeys(self._fillings, kind), 8, at)
