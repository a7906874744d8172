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
from onnx import TensorProto

from reducelower.numerics.measure import Array, holds_special, is_float
from reducelower.verification.feeding.bases import DRAWS, LARGE, MANY, Accepts, Base, Bases
from reducelower.verification.feeding.filling import FAR_DOWN, FAR_UP, Case
from reducelower.verification.inputs.made import Dims

__all__ = ["Sets"]

_MOST = 4_000_000  # elements, if a size is close to a constant
_FEW = 8  # with fewer elements, kinds of several values are drawn again
_WIDER = 300
"""A size that no type of eight bits holds."""
_MOST_WIDER = 2_000  # elements
_SIZES = 6  # free sizes that are replaced by others
_TRUTHS = 3  # bool inputs of which every combination is tried
_ROWS = 500  # sets at most to reach every row of a table
_NEXT = 4  # sizes beyond that of a window
_OVERLAPPING = 60  # sets of boxes, since few overlap by as much as a constant says
_FILLED = 400  # inputs filled in one round of sets that vary one operand each
_ALONE = ("wide", "large", "small", "zeros", "negative", "NaN", "infinity")
_AGAIN = ("mixed", "halves", "infinity", "limits", "around constants", "strings of several")
_OF_LARGE = ("random", "mixed", "wide", "huge", "NaN", "infinity", "limits", "false", "true")
_MOVED = ("random", "mixed", "NaN", "infinity", "true")
_WITH_TRUTHS = ("random", "wide", "NaN", "infinity")
_ORDINARY = ("random", "true")
_BESIDE = ("mixed", "wide", "negative", "around constants", "off steps", "from tables", "between constants")
_SPECIAL = frozenset({"infinity", "NaN", "only NaN"})


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
        yield from self._in_all_inputs(base)
        yield from self._truths(base)
        yield from self._in_one_input(base)
        yield from self._rows(base)
        yield from self._tables(base, accepts)
        if not self.rests_on_names:
            yield from self._places(base, accepts)
            yield from self._other_sizes(base, accepts)
        yield from self._declared(accepts)

    # Values

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

    def _in_all_inputs(self, base: Base) -> Iterator[Case]:
        fillings = self._fillings
        kinds = list(self._kinds)
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
        """Every combination of truth values for the bool inputs, since a mask may hide the few special elements."""
        bools = [spec.name for spec in self.specs if spec.element_type == TensorProto.BOOL][:_TRUTHS]
        for number in range(2 ** len(bools) if bools else 0):
            truths = {name: "true" if number >> at & 1 else "false" for at, name in enumerate(bools)}
            for at, kind in enumerate(kind for kind in _WITH_TRUTHS if kind in self._kinds):
                label = f"{kind} values, {', '.join(f'{name} {truth}' for name, truth in truths.items())}"
                yield self._case(base, label, dict.fromkeys(self._fillings, kind) | truths, 2, number, at)

    def _in_one_input(self, base: Base) -> Iterator[Case]:
        """Each kind of values in one operand, beside ordinary ones; and far larger values beside far smaller ones.

        Every set fills all operands, so with very many only some are varied, from the first to near the last.
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
        """Rows of one value each, rows of several magnitudes, and rows of -inf beside ordinary ones."""
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
        """Every index of the tables that the region holds, as many at a time as an input has room for."""
        for name in (name for name in base.feeds if name in self.limits.where):  # ordered: time may run out
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
        for at, (sizes, most) in enumerate(self._all_sizes(base)):
            key = tuple(sizes.values())
            if key in seen or base.count(sizes) > most:
                continue
            seen.add(key)
            resized = self._base_at(base, sizes, accepts, at)
            if resized is None:
                continue
            yield Case(f"random values, {[list(value.shape) for value in resized.feeds.values()]}", dict(resized.feeds))
            has_many = most == _MOST or (self.limits.has_steps and not at)
            beside: tuple[str, ...] = _BESIDE if has_many else () if at else ("mixed",)
            beside += ("random",) * (DRAWS if most == _MOST else 0)  # so that every row of a table is selected
            is_plain = 0 in key or self.limits.only_moves or resized.count() > LARGE
            for number, kind in enumerate(() if is_plain else beside):
                if kind in self._kinds:
                    yield self._case(resized, f"{kind} values", dict.fromkeys(self._fillings, kind), 7, at, number)

    def _all_sizes(self, base: Base) -> Iterator[tuple[dict[str, int], int]]:
        """Sizes, each with the number of elements that an input may have at most."""
        sizes, names = dict(base.sizes), list(base.sizes)
        if not names:
            return
        empty = (0,) if self.limits.takes_empty else ()
        if self.limits.has_steps:
            many = dict.fromkeys(names, max(2, round(MANY ** (1 / len(names)))))
            yield many, LARGE
        for step in range(1, min(self.limits.smallest_size, _NEXT) + 1):
            yield {name: max(size, self.limits.smallest_size) + step for name, size in sizes.items()}, LARGE
        for name in names[:_SIZES]:
            for size in (1, sizes[name] + 1, *empty):
                yield {**sizes, name: size}, LARGE
            yield {**sizes, name: _WIDER}, _MOST_WIDER
        yield from ((dict.fromkeys(names, size), LARGE) for size in (1, 2))
        yield from ((dict.fromkeys(names, size), _MOST) for size in self.limits.rows)
        if empty:
            yield dict.fromkeys(names, 0), LARGE
        for size in sorted({bound + step for bound in self.limits.bounds for step in (-1, 0, 1, 2)}):
            everywhere = dict.fromkeys(names, size)
            if base.count(everywhere) <= _MOST // 16:
                yield everywhere, _MOST
            else:
                yield from (({**dict.fromkeys(names, other), name: size}, _MOST) for name in names for other in (2, 1))

    def _declared(self, accepts: Accepts) -> Iterator[Case]:
        """Ordinary values at the declared sizes of the other regions."""
        for dims in self.others:
            specs = [replace(spec, dims=each) for spec, each in zip(self.specs, dims, strict=True)]
            base = self._search(specs, accepts)
            if base is not None:
                for at, kind in enumerate(_ORDINARY):
                    yield self._case(base, f"{kind} values", dict.fromkeys(self._fillings, kind), 8, at)
