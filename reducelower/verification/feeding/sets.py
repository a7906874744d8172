"""The sets of inputs that both sides of a region are run on: the model's own, values of every kind, and other sizes.

Each kind of values is fed to all inputs, and to one input at a time. The first sizes are those of `Bases`; then each is
replaced by 0, 1 and others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from reducelower.numerics.measure import holds_special
from reducelower.verification.feeding.bases import DRAWS, Accepts, Bases
from reducelower.verification.feeding.filling import FAR_DOWN, FAR_UP, Case
from reducelower.verification.feeding.sizes import LARGE, Base
from reducelower.verification.inputs.declared import Dims

__all__ = ["Sets"]

_MANY = 1000  # elements, so that some lie close to a step
_MOST = 4_000_000  # elements, if a size is close to a constant
_FEW = 8  # with fewer elements, kinds of several values are drawn again
_WIDER = 300
"""A size that no type of eight bits holds."""
_MOST_WIDER = 2_000  # elements
_SIZES = 6  # free sizes that are replaced by others
_FAR = 3  # inputs that are far larger or smaller than the others
_ROWS = 500  # sets at most to reach every row of a table
_OVERLAPPING = 60  # sets of boxes, since few overlap by as much as a constant says
_FILLED = 400  # inputs filled in one round of sets that vary one operand each
_ALONE = ("wide", "small", "zeros", "NaN", "infinity")
_AGAIN = ("mixed", "infinity", "limits", "around constants", "strings of several")
_OF_LARGE = ("random", "mixed", "wide", "huge", "NaN", "infinity", "limits", "false", "true")
_MOVED = ("random", "mixed", "NaN", "infinity", "true")
_ORDINARY = ("random", "true")
_BESIDE = ("mixed", "wide", "large", "around constants", "between constants")
_SPECIAL = frozenset({"infinity", "NaN", "only NaN", "rows at the end"})


@dataclass
class Sets(Bases):
    """The sets of values for one region or lemma.

    Attributes:
        others: declared sizes of regions that are equal but for sizes; ordinary values are tried at each.
        only_samples: whether only the samples are fed.
        reached: inputs that were fed every index of their table.
    """

    others: Sequence[Sequence[Dims | None]] = ()
    only_samples: bool = False
    reached: set[str] = field(default_factory=set)

    def __call__(self, accepts: Accepts, suits: Accepts) -> Iterator[Case]:
        """One set after another that the source accepts; `suits` asks both sides, for sizes other than the sample's."""
        if not self.specs:
            yield Case("no inputs", {})
            return
        is_open = self.limits.open_to_special or self.limits.rounds_to_integers
        samples = [each for each in self.samples if not (is_open and holds_special(each.values())) and accepts(each)]
        is_large = any(value.size > LARGE for each in samples[:1] for value in each.values())
        for each in samples[:1] if is_large else samples:
            is_special = holds_special(each.values())
            yield Case("values of the model", dict(each), is_special)
        if self.only_samples:
            return
        base = self._from_sample(samples[0], suits) if samples else self._search(self.specs, accepts)
        if base is None:
            return
        yield from self._of_kinds(base)
        yield from self._tables(base, accepts)
        if not self.rests_on_names:
            yield from self._places(base, accepts)
            yield from self._other_sizes(base, accepts)
        yield from self._declared(accepts)

    def _case(self, base: Base, label: str, kinds: Mapping[str, str], *seed: int) -> Case:
        shapes = {name: value.shape for name, value in base.feeds.items()}
        return Case(
            f"{label}, {[list(shape) for shape in shapes.values()]}",
            {**base.feeds, **self._fill(shapes, kinds, *seed)},
            not _SPECIAL.isdisjoint(kinds.values()),
        )

    @cached_property
    def _kinds(self) -> Mapping[str, None]:
        return dict.fromkeys(kind for filling in self._fillings.values() for kind in filling.kinds)

    def _of_kinds(self, base: Base) -> Iterator[Case]:
        """Each kind of values in all inputs, and in one beside ordinary ones; large values beside small ones.

        Every set fills all inputs, so with very many only some are varied alone, from the first to near the last.
        """
        fillings = self._fillings
        for at, kind in enumerate(self._kinds_in_all(base)):
            yield self._case(base, f"{kind} values", dict.fromkeys(fillings, kind), 1, at)
        if len(self.specs) < 2 or self.limits.only_moves:
            return
        numbers, ordinary = {spec.name: at for at, spec in enumerate(self.specs, 1)}, dict.fromkeys(fillings, "random")
        for name in list(fillings)[:: max(1, math.ceil(len(fillings) ** 2 / _FILLED))]:
            for at, kind in enumerate(kind for kind in _ALONE if kind in fillings[name].kinds):
                label = f"{kind} values in input {numbers[name]}"
                yield self._case(base, label, ordinary | {name: kind}, 3, numbers[name], at)
        far = [name for name, filling in fillings.items() if FAR_UP in filling.kinds]
        for name in far[:_FAR] if len(far) > 1 else ():
            for own, others in ((FAR_UP, FAR_DOWN), (FAR_DOWN, FAR_UP)):
                label = f"input {numbers[name]} {own} and others {others}"
                yield self._case(base, label, ordinary | dict.fromkeys(far, others) | {name: own}, 4, numbers[name])

    def _kinds_in_all(self, base: Base) -> list[str]:
        kinds = [kind for kind in self._kinds if kind not in (FAR_UP, FAR_DOWN)]
        count = max((base.feeds[name].size for name in self._fillings), default=0)
        if count > LARGE:
            kinds = [kind for kind in kinds if kind in _OF_LARGE]
        if self.limits.only_moves:
            kinds = [kind for kind in kinds if kind in _MOVED]
        elif count < _FEW:
            kinds += [kind for kind in kinds if kind in _AGAIN] * DRAWS
        return kinds + ["positive"] * (_OVERLAPPING if self.limits.open_to_special == "NonMaxSuppression" else 0)

    def _tables(self, base: Base, accepts: Accepts) -> Iterator[Case]:
        """Every index of the tables that the region holds, as many at a time as an input has room for.

        Of a table that differs between the sides, only the indices of other rows.
        """
        for name in (name for name in base.feeds if name in self.limits.where):  # ordered: time may run out
            count, value = self.limits.table(name), base.feeds[name]
            rows, most = self.limits.changed.get(name, np.arange(count)), _ROWS * value.size
            if not count or (len(rows) > most and name not in self.limits.changed):
                continue
            if len(rows) <= most:
                self.reached.add(name)
            for start in range(0, min(len(rows), most), max(value.size, 1)):
                indices = rows.take(range(start, start + value.size), mode="wrap")
                feeds = {**base.feeds, name: indices.reshape(value.shape).astype(value.dtype)}
                if accepts(feeds):
                    yield Case(f"indices from {start}", feeds)

    def _places(self, base: Base, accepts: Accepts) -> Iterator[Case]:
        """Other values of inputs that say where or how much."""
        shapes = {name: value.shape for name, value in base.feeds.items()}
        specs = [spec for spec in self.specs if spec.name in self.limits.where and spec.name in self.limits.roles]
        draws = 2 * DRAWS if base.count() >= _FEW else 8 * DRAWS
        for draw in range(draws if specs else 0):
            rng = np.random.default_rng([self.seed, 6, draw])
            case = self._case(base, "other places", dict.fromkeys(self._fillings, "random"), 6, draw)
            case.feeds.update((spec.name, self._draw(spec, "random", shapes, rng)) for spec in specs)
            if accepts(case.feeds):
                yield case

    def _other_sizes(self, base: Base, accepts: Accepts) -> Iterator[Case]:
        """Each free size replaced by 1, one more, 0, and numbers close to constants, if the source accepts that."""
        seen = {tuple(base.sizes.values())}
        for at, (sizes, most, kinds) in enumerate(self._all_sizes(base) if base.sizes else ()):
            key = tuple(sizes.values())
            if key in seen or base.count(sizes) > most:
                continue
            seen.add(key)
            resized = self.at(base, sizes, accepts, at)
            if resized is None:
                continue
            yield Case(f"random values, {[list(value.shape) for value in resized.feeds.values()]}", dict(resized.feeds))
            is_plain = self.limits.only_moves or resized.count() > LARGE
            for number, kind in enumerate(() if is_plain else kinds):
                if kind in self._kinds:
                    yield self._case(resized, f"{kind} values", dict.fromkeys(self._fillings, kind), 7, at, number)

    def _all_sizes(self, base: Base) -> Iterator[tuple[dict[str, int], int, Sequence[str]]]:
        """Sizes, the number of elements that an input may have at most, and the kinds of values to try besides."""
        sizes, names, limits = dict(base.sizes), list(base.sizes), self.limits
        zero = (0,) if limits.takes_empty else ()
        if limits.has_steps:
            yield dict.fromkeys(names, max(2, round(_MANY ** (1 / len(names))))), LARGE, _BESIDE
        for name in names[:_SIZES]:
            yield from (({**sizes, name: size}, LARGE, ()) for size in (1, sizes[name] + 1, *zero))
            yield {**sizes, name: _WIDER}, _MOST_WIDER, ()
        yield from ((dict.fromkeys(names, size), LARGE, ()) for size in (1, 2, *zero))
        often = (*_BESIDE, *("random",) * DRAWS)  # so that every row of a table is selected
        yield from ((dict.fromkeys(names, size), _MOST, often) for size in limits.rows)
        for size in sorted({bound + step for bound in limits.bounds for step in (-1, 0, 1, 2)}):
            everywhere = dict.fromkeys(names, size)
            if base.count(everywhere) <= _MOST // 16:
                yield everywhere, _MOST, often
            else:
                beside = ({**dict.fromkeys(names, other), name: size} for name in names for other in (2, 1))
                yield from ((each, _MOST, often) for each in beside)

    def _declared(self, accepts: Accepts) -> Iterator[Case]:
        """Ordinary values at the declared sizes of the other regions."""
        for dims in self.others:
            specs = [replace(spec, dims=each) for spec, each in zip(self.specs, dims, strict=True)]
            base = self._search(specs, accepts)
            if base is not None:
                for at, kind in enumerate(_ORDINARY):
                    yield self._case(base, f"{kind} values", dict.fromkeys(self._fillings, kind), 8, at)
