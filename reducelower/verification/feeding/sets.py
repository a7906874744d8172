"""The sets of inputs that both sides of a region are run on: the model's own, values of every kind, and other sizes.

Each kind of values is fed to all inputs, and to one input at a time. The first sizes are those of `Bases`; then each is
replaced by 0, 1 and others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from reducelower.numerics.measure import Array, holds_special, is_float
from reducelower.verification.feeding.bases import DRAWS, Accepts, Bases
from reducelower.verification.feeding.filling import FAR_DOWN, FAR_UP, Case, kind_at
from reducelower.verification.feeding.limits import LARGEST_BOUND, LARGEST_FED
from reducelower.verification.feeding.roles import SELECTING
from reducelower.verification.feeding.sizes import LARGE, Base
from reducelower.verification.inputs.declared import Dims

__all__ = ["Sets"]

_MANY = 1000  # elements, so that some lie close to a step
_MOST = 4_000_000  # elements, if a size is close to a constant
_FEW = 8  # with fewer elements, kinds of several values are drawn again
_SIZES = 6  # free sizes that are replaced by others
_COUNTS = 16  # numbers beside constants, fed as an index or a count
_ROWS = 500  # sets at most to reach every row of a table
_OVERLAPPING = 60  # sets of boxes, since few overlap by as much as a constant says
_DRAWN = 400  # sets of few values each, so that some lie close to a step
_FILLED = 400  # inputs filled in one round of sets that vary one operand each
_ALONE = {"wide": "random", "NaN": "random", "infinity": "zeros", FAR_UP: FAR_DOWN, FAR_DOWN: FAR_UP}
"""Kinds of values in one input, and those in all others."""
_AGAIN = ("mixed", "infinity", "limits", "around constants", "strings that are held")
_OF_PLACES = ("random", "wide", "large")
"""Kinds of values of which only that they become indices or counts is known."""
_MAIN = ("random", "mixed", "wide", "huge", "NaN", "infinity", "limits", "false", "true")
"""Of values that are only moved, or very many, these show what others would."""
_OF_MANY = ("random", "mixed", "wide", "large", "around constants", "between constants")


@dataclass
class Sets(Bases):
    """The sets of values for one region or lemma.

    Attributes:
        others: declared sizes of regions that are equal but for sizes; ordinary values are tried at each.
        only_samples: whether only the samples are fed.
    """

    others: Sequence[Sequence[Dims | None]] = ()
    only_samples: bool = False

    def __call__(self, accepts: Accepts, suits: Accepts) -> Iterator[Case]:
        """One set after another that the source accepts; `suits` asks both sides, for sizes other than the sample's."""
        if not self.specs:
            yield Case("no inputs", {})
            return
        is_open = self.limits.open_to_special or self.limits.rounds_to_integers
        samples = [each for each in self.samples if not (is_open and holds_special(each.values())) and accepts(each)]
        is_large = any(value.size > LARGE for each in samples[:1] for value in each.values())
        for each in samples[:1] if is_large else samples:
            yield Case("values of the model", dict(each))
        if self.only_samples:
            return
        base = self._from_sample(samples[0], suits) if samples else self._search(self.specs, accepts)
        if base is None:
            return
        yield from self._of_kinds(base)
        yield from self._rows(base, accepts)
        if not self.rests_on_names:
            yield from self._other_places(base, accepts)
            yield from self._many(base, accepts)
            yield from self._other_sizes(base, accepts)
        yield from self._declared(accepts)

    def _case(self, base: Base, kind: str, *seed: int, but: Mapping[str, str] | None = None, label: str = "") -> Case:
        """Values of one kind in all inputs that hold data, `but` for those named."""
        shapes = {name: value.shape for name, value in base.feeds.items()}
        made = self._fill(self._data, shapes, {**dict.fromkeys(self._data, kind), **(but or {})}, *seed)
        return Case(f"{label or f'{kind} values'}, {list(map(list, shapes.values()))}", {**base.feeds, **made})

    @cached_property
    def _kinds(self) -> Mapping[str, None]:
        return dict.fromkeys(kind for name in self._data for kind in self._fillings[name].kinds)

    def _of_kinds(self, base: Base) -> Iterator[Case]:
        """Each kind of values in all inputs, and in one beside ordinary ones; large values beside small ones.

        Every set fills all inputs, so with very many only some are varied alone, from the first to near the last.
        """
        for place, kind in enumerate(self._kinds_in_all(base)):
            yield self._case(base, kind, 1, place)
        if len(self.specs) < 2 or self.limits.only_moves:
            return
        own = [*map(kind_at, self.limits.of_one), *map(kind_at, self.limits.texts_of_one)]
        alone = {**_ALONE, **dict.fromkeys(own, "random")}
        for number, name in list(enumerate(self._data, 1))[:: max(1, math.ceil(len(self._data) ** 2 / _FILLED))]:
            for place, (kind, others) in enumerate(alone.items()):
                if kind in self._fillings[name].kinds:
                    label = f"{kind} values in input {number} beside {others} ones"
                    yield self._case(base, others, 3, number, place, but={name: kind}, label=label)

    def _kinds_in_all(self, base: Base) -> list[str]:
        kinds = [kind for kind in self._kinds if kind not in (FAR_UP, FAR_DOWN)]
        count = max((base.feeds[name].size for name in self._data), default=0)
        if count > LARGE or self.limits.only_moves:
            kinds = [kind for kind in kinds if kind in _MAIN]
        elif count < _FEW:
            kinds += [kind for kind in kinds if kind in _AGAIN] * DRAWS
        return kinds + ["positive"] * (_OVERLAPPING if self.limits.open_to_special == "NonMaxSuppression" else 0)

    def _rows(self, base: Base, accepts: Accepts) -> Iterator[Case]:
        """The indices of the rows of tables that the region holds, as many at a time as an input has room for."""
        for name, rows in self.limits.rows.items():
            value = base.feeds[name]
            for start in range(0, min(len(rows), _ROWS * value.size), max(value.size, 1)):
                indices = rows.take(range(start, start + value.size), mode="wrap")
                feeds = {**base.feeds, name: indices.reshape(value.shape).astype(value.dtype)}
                if accepts(feeds):
                    yield Case(f"indices from {start}", feeds)

    def _other_places(self, base: Base, accepts: Accepts) -> Iterator[Case]:
        """Other values of inputs that say where or how much."""
        yield from self._places_drawn(base, accepts, 2 * DRAWS if base.count() >= _FEW else 8 * DRAWS)
        yield from self._filled(base, self._counts, accepts)

    def _filled(self, base: Base, numbers: Sequence[int], accepts: Accepts) -> Iterator[Case]:
        """Each of these numbers in all inputs that say where or how much, as far as they may hold it."""
        shapes = {name: value.shape for name, value in base.feeds.items()}
        chosen = self._fill([name for name in self._places if base.feeds[name].dtype.kind == "b"], shapes, {}, 6)
        most = {name: self._most(name, base.feeds) for name in self._places}
        for number in numbers if any(most.values()) else ():
            counts = {name: np.full_like(base.feeds[name], number) for name in most if number <= most[name]}
            feeds = {**base.feeds, **chosen, **counts}
            if counts and accepts(feeds):
                yield Case(f"{number} as an index or count", feeds)

    def _most(self, name: str, feeds: Mapping[str, Array]) -> float:
        """The largest number to fill an input with: the last index if it selects from something; 0 for none."""
        role, like = self.limits.roles.get(name), feeds[name]
        # Where no index may occur twice, one number everywhere is none that the page allows.
        if like.dtype.kind not in "iuf" or not like.size or (role is not None and role.is_distinct):
            return 0
        if role is not None and role.kind in SELECTING:
            shapes = {**self.limits.constant_shapes, **{name: value.shape for name, value in feeds.items()}}
            return role.length(shapes.get(role.data, ())) - 1
        return math.inf if is_float(like) else float(np.iinfo(like.dtype).max)

    @property
    def _unruled(self) -> list[str]:
        """The inputs that say where or how much, of which nothing else is known."""
        return [name for name in self._places if name not in self.limits.roles]

    def _places_drawn(self, base: Base, accepts: Accepts, draws: int) -> Iterator[Case]:
        shapes = {name: value.shape for name, value in base.feeds.items()}
        for draw in range(draws if self._places else 0):
            case = self._case(base, "random", 6, draw, label="other places")
            kinds = dict.fromkeys(self._unruled, _OF_PLACES[draw % len(_OF_PLACES)])
            case.feeds.update(self._fill(self._places, shapes, kinds, 6, draw))
            if accepts(case.feeds):
                yield case

    @property
    def _counts(self) -> Sequence[int]:
        """The least sizes and whole numbers that the region holds, and one more than each."""
        held = {*self.limits.sizes, *(int(number) for number in self.limits.constants if number >= 1)}
        return sorted({size + step for size in held for step in (0, 1) if size < LARGEST_BOUND})[:_COUNTS]

    def _many(self, base: Base, accepts: Accepts) -> Iterator[Case]:
        """Values of many elements, so that some lie close to a step; of fixed sizes, as many sets."""
        if not self.limits.has_steps:
            return
        kinds = [kind for kind in _OF_MANY if kind in self._kinds]
        if not base.sizes:
            again = min(_DRAWN, _MANY // max(base.count(), 1)) if kinds else 0
            yield from (self._case(base, kinds[draw % len(kinds)], 7, draw) for draw in range(again))
            return
        size = max(2, round(_MANY ** (1 / len(base.sizes))))
        resized = self.at(base, dict.fromkeys(base.sizes, size), accepts)
        if resized is not None and resized.count() <= LARGE:
            yield from (self._case(resized, kind, 7, place) for place, kind in enumerate(kinds))
            yield from self._places_drawn(resized, accepts, len(_OF_PLACES) if self._unruled else 0)

    def _other_sizes(self, base: Base, accepts: Accepts) -> Iterator[Case]:
        """Each free size replaced by 1, one more, 0, and numbers close to constants, if the source accepts that."""
        tried = {tuple(base.sizes.values())}
        for at, sizes in enumerate(self._all_sizes(base)):
            if tuple(sizes.values()) in tried:
                continue
            tried.add(tuple(sizes.values()))
            resized = self.at(base, sizes, accepts, at)
            if resized is not None:
                yield self._case(resized, "random", 7, at)
                largest = max(sizes.values(), default=0)
                if largest >= LARGEST_FED and 1 not in sizes.values():  # which fits whatever the number is
                    yield from self._filled(resized, (largest - 1, largest), accepts)

    def _all_sizes(self, base: Base) -> Iterator[dict[str, int]]:
        """Sizes, one at a time and all at once, with which the inputs do not get too large."""
        names, bounds = list(base.sizes), {bound + step for bound in self.limits.bounds for step in (-1, 0, 1, 2)}
        bounds.add(LARGEST_FED)
        zero = (0,) if self.limits.takes_empty else ()
        for chosen in (*([name] for name in names[:_SIZES]), names):
            more = {name: base.sizes[name] + 1 for name in chosen}
            for change in (more, *(dict.fromkeys(chosen, size) for size in (1, *zero))):
                if base.count({**base.sizes, **change}) <= LARGE:
                    yield {**base.sizes, **change}
        for size in sorted(bounds):
            everywhere = dict.fromkeys(names, size)
            beside = ({**dict.fromkeys(names, other), name: size} for name in names for other in (2, 1))
            fits = base.count(everywhere) <= _MOST // 16
            yield from (sizes for sizes in ([everywhere] if fits else beside) if base.count(sizes) <= _MOST)

    def _declared(self, accepts: Accepts) -> Iterator[Case]:
        """Ordinary values at the declared sizes of the other regions."""
        for dims in self.others:
            specs = [replace(spec, dims=each) for spec, each in zip(self.specs, dims, strict=True)]
            base = self._search(specs, accepts)
            if base is not None:
                yield self._case(base, "random", 8)
