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

from reducelower.numerics.measure import holds_special
from reducelower.verification.feeding.bases import DRAWS, Accepts, Bases
from reducelower.verification.feeding.filling import FAR_DOWN, FAR_UP, Case
from reducelower.verification.feeding.sizes import LARGE, Base
from reducelower.verification.inputs.declared import Dims

__all__ = ["Sets"]

_MANY = 1000  # elements, so that some lie close to a step
_MOST = 4_000_000  # elements, if a size is close to a constant
_FEW = 8  # with fewer elements, kinds of several values are drawn again
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
        yield from self._tables(base, accepts)
        if not self.rests_on_names:
            yield from self._other_places(base, accepts)
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
        for at, kind in enumerate(self._kinds_in_all(base)):
            yield self._case(base, kind, 1, at)
        if len(self.specs) < 2 or self.limits.only_moves:
            return
        numbers = {spec.name: at for at, spec in enumerate(self.specs, 1)}
        for name in self._data[:: max(1, math.ceil(len(self._data) ** 2 / _FILLED))]:
            for at, kind in enumerate(kind for kind in _ALONE if kind in self._fillings[name].kinds):
                label = f"{kind} values in input {numbers[name]}"
                yield self._case(base, "random", 3, numbers[name], at, but={name: kind}, label=label)
        far = [name for name in self._data if FAR_UP in self._fillings[name].kinds]
        for name in far[:_FAR] if len(far) > 1 else ():
            for own, others in ((FAR_UP, FAR_DOWN), (FAR_DOWN, FAR_UP)):
                label = f"input {numbers[name]} {own} and others {others}"
                yield self._case(base, others, 4, numbers[name], but={name: own}, label=label)

    def _kinds_in_all(self, base: Base) -> list[str]:
        kinds = [kind for kind in self._kinds if kind not in (FAR_UP, FAR_DOWN)]
        count = max((base.feeds[name].size for name in self._data), default=0)
        if count > LARGE:
            kinds = [kind for kind in kinds if kind in _OF_LARGE]
        if self.limits.only_moves:
            kinds = [kind for kind in kinds if kind in _MOVED]
        elif count < _FEW:
            kinds += [kind for kind in kinds if kind in _AGAIN] * DRAWS
        return kinds + ["positive"] * (_OVERLAPPING if self.limits.open_to_special == "NonMaxSuppression" else 0)

    def _tables(self, base: Base, accepts: Accepts) -> Iterator[Case]:
        """The indices of the tables that the region holds, as many at a time as an input has room for.

        Of a table that differs between the sides, only the indices of other rows.
        """
        for name in self._places:
            count, value = self.limits.table(name), base.feeds[name]
            rows, most = self.limits.changed.get(name, np.arange(count)), _ROWS * value.size
            if not count or (len(rows) > most and name not in self.limits.changed):
                continue
            for start in range(0, min(len(rows), most), max(value.size, 1)):
                indices = rows.take(range(start, start + value.size), mode="wrap")
                feeds = {**base.feeds, name: indices.reshape(value.shape).astype(value.dtype)}
                if accepts(feeds):
                    yield Case(f"indices from {start}", feeds)

    def _other_places(self, base: Base, accepts: Accepts) -> Iterator[Case]:
        """Other values of inputs that say where or how much."""
        shapes = {name: value.shape for name, value in base.feeds.items()}
        names = [name for name in self._places if name in self.limits.roles]
        draws = 2 * DRAWS if base.count() >= _FEW else 8 * DRAWS
        for draw in range(draws if names else 0):
            case = self._case(base, "random", 6, draw, label="other places")
            case.feeds.update(self._fill(names, shapes, {}, 6, draw))
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
                    yield self._case(resized, kind, 7, at, number)

    def _all_sizes(self, base: Base) -> Iterator[tuple[dict[str, int], int, Sequence[str]]]:
        """Sizes, the number of elements that an input may have at most, and the kinds of values to try besides."""
        sizes, names, limits = dict(base.sizes), list(base.sizes), self.limits
        zero = (0,) if limits.takes_empty else ()
        if limits.has_steps:
            yield dict.fromkeys(names, max(2, round(_MANY ** (1 / len(names))))), LARGE, _BESIDE
        for name in names[:_SIZES]:
            yield from (({**sizes, name: size}, LARGE, ()) for size in (1, sizes[name] + 1, *zero))
        yield from ((dict.fromkeys(names, size), LARGE, ()) for size in (1, 2, *zero))
        often = (*_BESIDE, *("random",) * DRAWS)  # so that every row of a table is selected
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
                yield from (self._case(base, kind, 8, at) for at, kind in enumerate(_ORDINARY))
