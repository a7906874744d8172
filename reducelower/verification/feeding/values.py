"""The values a region is fed: ordinary and edge values of its types, and either side of every constant it holds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise
from math import isqrt, prod
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from reducelower.numerics.measure import Array
from reducelower.verification.feeding.battery import Case
from reducelower.verification.feeding.filling import FAR_DOWN, FAR_UP, Filling
from reducelower.verification.feeding.limits import FED, Limits
from reducelower.verification.feeding.nonempty import feeds_no_empty, never_zero
from reducelower.verification.inputs.made import STRATEGIES, InputSpec, Values, bindings, random_array
from reducelower.verification.regions.elementwise import any_size
from reducelower.verification.running.memory import most_elements

__all__ = ["Accepts", "fed", "is_large", "reads_every_row", "without_elements"]

_LARGE = 20_000  # elements; above, each kind of value costs more than it is likely to show
_MAXIMUM = 1_000_000
_MOST_AROUND = 4_000_000  # either side of a size that is held, for one kind of values
_MANY = 1000  # values along all free dimensions
_SOME = 48  # elements, so that every value of a kind is likely to be among them
_FEW_ELEMENTS = 8  # for which kinds of several values are drawn again
_DRAWS = 3
_OF_OVERLAPS = ("NonMaxSuppression",)  # which few boxes have as much of as a constant says
_OVERLAPPING = 60
_NEXT = 4  # sizes that a window is tried along
_RANKS = (2, 3, 1, 4, 0)  # of inputs whose rank is not known
_OF_CARRIED = 4  # sizes
_MOST_PARTS = 1000  # of the rows of a table
_TAKEN = 1 << 18  # elements of these, at a time
_MOST_WITHOUT = 3  # sizes that are zero one at a time
_DRAWN = (*STRATEGIES[:1] * 6, *STRATEGIES[1:])  # what is drawn may fit at another time
_TRUTHS = 3  # bool inputs, tried in every combination

Accepts = Callable[[Mapping[str, Any]], bool]


def fed(
    specs: Sequence[InputSpec],
    limits: Limits,
    seed: int,
    accepts: Accepts,
    suits: Accepts | None = None,
    others: Sequence[Sequence[InputSpec]] = (),
) -> Iterator[Case]:
    """Sets of inputs for a region.

    Args:
        accepts: whether the source runs on a set of inputs; asked where sizes or indices have to fit.
        suits: whether both sides run on it; asked where inputs that are declared large may be small, so that few kinds
            of values are left for large ones. None where sizes are to be those that are declared.
        others: the same inputs with other sizes, for ordinary values.
    """
    if not specs:
        yield Case("no inputs", {})
        return
    specs = [replace(spec, dims=spec.dims or (None,)) if spec.name in limits.vectors else spec for spec in specs]
    known = [len(spec.dims) for spec in specs if spec.dims is not None]
    ranks = list(dict.fromkeys([*sorted(set(known), key=known.count, reverse=True), *_RANKS]))
    if 0 < len(known) < len(specs) and not limits.takes_any:
        # Some kernels end the process on another rank than theirs, which is most often that of their other inputs.
        ranks = [rank for rank in ranks if 2 * known.count(rank) > len(known)]
    for rank in ranks:
        ranked = [spec if spec.dims is not None else replace(spec, dims=(None,) * rank) for spec in specs]
        small = None
        if suits is not None and is_large(ranked):
            smaller = [replace(spec, dims=any_size(spec.dims, limits.sizes)) for spec in ranked]
            for small in _fed(smaller, limits, seed, suits, once=True):
                yield small
        first = None
        for first in _fed(ranked, limits, seed, accepts, few=small is not None):
            yield first
        for other in others:
            yield from _fed(other, limits, seed, accepts, few=True)
        if first is not None or len(known) == len(specs):
            return


def is_large(specs: Sequence[InputSpec]) -> bool:
    """Whether the sizes that are declared make so many elements that fewer would show as much in less time."""
    sizes = [[dim for dim in spec.dims or () if isinstance(dim, int)] for spec in specs]
    return any(prod(declared) > _MANY for declared in sizes)


def _fed(
    specs: Sequence[InputSpec], limits: Limits, seed: int, accepts: Accepts, *, few: bool = False, once: bool = False
) -> Iterator[Case]:
    tried, first = 0, 0
    fillings = {spec.name: Filling.of(spec, limits) for spec in specs}
    most = min(max(_MAXIMUM, _count(specs, defaultdict(lambda: 2))), most_elements())  # of what was not asked for
    ordinary = list(_sizes(specs, limits))
    around = [*ordinary, *_of_one(ordinary[0]), *_around(specs, ordinary[0], limits)]
    for position, given in enumerate(chain(around, _held(specs, ordinary[0], limits))):
        if first and position >= len(around):
            return
        sizes = {name: max(size, limits.least) if size else 0 for name, size in given.items()}
        shapes = {spec.name: _shape(spec, sizes) for spec in specs}
        count = _count(specs, sizes)
        if len(ordinary) <= position < len(around):
            bound = max(most, _MOST_AROUND)
        elif position < len(ordinary) and tried:
            bound = max(first, _LARGE)
        else:
            bound = most
        if count > bound:
            continue
        feeder = _Feeder(specs, limits, fillings, shapes, (seed, position))
        fitting = feeder.fitting(accepts)
        if fitting is None or (0 in sizes.values() and not _are_sizes(feeder, sizes, accepts)):
            if once:
                return
            continue
        where, plain = fitting
        is_first = not first and bool(count)
        kinds = _kinds(fillings, small=is_first, few=count > _LARGE or limits.is_carried)
        if limits.has_steps and not is_first and count >= _MANY // 2:
            kinds.append("between constants")
        if few or (position >= len(ordinary) and not is_first):
            kinds = [kind for kind in kinds if kind in _PLAIN]
        elif 0 in sizes.values():
            kinds = [kind for kind in kinds if kind in _OF_NOTHING]
        elif limits.only_moves:
            kinds = [kind for kind in kinds if kind in (_PLAIN if count > _LARGE else _MOVED)]
        if is_first and count < _FEW_ELEMENTS and not few:
            kinds += [kind for kind in kinds if kind in _VARIED] * _DRAWS
        if is_first and limits.open_to_special in _OF_OVERLAPS:
            kinds += ["positive"] * _OVERLAPPING
        tried, first = tried + 1, first or count
        for at, kind in enumerate(kinds):
            feeds = feeder.feeds(where, {}, kind, at) if at else plain
            yield _case(kind, f"{[list(shape) for shape in shapes.values()]}", feeds)
        if few:
            return
        if is_first:
            yield from _truths(feeder, where)
            yield from _special_alone(feeder, where)
            yield from _far_apart(feeder, where)
            yield from _every_row(feeder, given, accepts)
        if once or (limits.is_carried and tried == _OF_CARRIED):
            return


def _are_sizes(feeder: _Feeder, sizes: Mapping[str, int], accepts: Accepts) -> bool:
    """Whether the source takes as many dimensions with elements: kernels do not compare sizes where there are none."""
    full = {name: max(size, feeder.limits.least) for name, size in sizes.items()}
    return replace(feeder, shapes={spec.name: _shape(spec, full) for spec in feeder.specs}).fitting(accepts) is not None


def _case(kind: str, of: str, feeds: dict[str, Any]) -> Case:
    return Case(f"{kind} values, {of}", feeds, kind in _SPECIAL, Filling.is_far(kind))


@dataclass(frozen=True)
class _Feeder:
    """Fills the inputs of a region at one binding of sizes."""

    specs: Sequence[InputSpec]
    limits: Limits
    fillings: Mapping[str, Filling]
    shapes: Mapping[str, tuple[int, ...]]
    seed: tuple[int, ...]

    def feeds(self, where: Mapping[str, Values], kinds: Mapping[str, str], kind: str, *seed: int) -> dict[str, Any]:
        """One array per input: `where` fills those that are indices and sizes, and kinds of values fill the others."""
        found: dict[str, Any] = {}
        for at, spec in enumerate(self.specs):
            own = (*self.seed, *seed, at)
            if spec.name in where:
                found[spec.name] = self._where(spec, where[spec.name], own)
            else:
                wanted = kinds.get(spec.name, kind)
                found[spec.name] = self.fillings[spec.name].values(wanted, self.shapes[spec.name], own)
        return found

    def fitting(self, accepts: Accepts) -> tuple[dict[str, Values], dict[str, Any]] | None:
        """How to fill the inputs that are indices and sizes so that the source runs, and what it ran on."""
        places = [spec.name for spec in self.specs if spec.name in self.limits.where]
        feeds = self.feeds(dict.fromkeys(places, STRATEGIES[0]), {}, "random")
        for draw, values in enumerate(_DRAWN if places else STRATEGIES[:1]):
            for at, spec in enumerate(self.specs):
                if spec.name in places:
                    feeds[spec.name] = self._where(spec, values, (*self.seed, draw, at) if draw else (*self.seed, at))
            if accepts(feeds):
                return dict.fromkeys(places, values), feeds
        return None

    def _where(self, spec: InputSpec, values: Values, seed: tuple[int, ...]) -> Array:
        """An index over its whole range or a shape for what is there, where these are known, else a small number."""
        rng, shape = np.random.default_rng(seed), self.shapes[spec.name]
        role = self.limits.roles.get(spec.name)
        if role is not None and values == "random":
            of = self.shapes.get(role.data, self.limits.held.get(role.data))
            found = role.values(of, shape, rng, self.limits.constants)
            if found is not None:
                # numpy gives numbers of rank 0
                return np.asarray(found, helper.tensor_dtype_to_np_dtype(spec.element_type))
        return random_array(spec.element_type, shape, values, rng)


_FEW = ("random", "mixed", "wide", "huge", "NaN", "infinity", "limits", "false", "true")
_PLAIN = ("random", "true")
_OF_NOTHING = (*_PLAIN, "mixed")
_MOVED = (*_PLAIN, "mixed", "NaN")
_AT_OTHER_SIZES = ("random", "mixed", "wide", "negative", "off steps", "from tables")
_VARIED = ("mixed", "halves", "infinity", "limits", "around constants", "strings of several")
_SPECIAL = frozenset({"infinity", "NaN", "one NaN", "negative infinity"})


def _sizes(specs: Sequence[InputSpec], limits: Limits) -> Iterator[dict[str, int]]:
    """Sizes for free dimensions: distinct ones first, one and zero among them, many where values are cut to steps."""
    for at, sizes in enumerate(bindings(specs)):
        if not at:
            yield from _with_more(specs, sizes)
        yield sizes
        if at == 1 and limits.takes_empty:
            yield from without_elements(sizes)
        if at == 3:
            break
    yield from (sizes | like for like in _like_the_others(specs))
    many = dict.fromkeys(sizes, max(2, round(_MANY ** (1 / max(len(sizes), 1)))))
    if sizes and limits.has_steps and _count(specs, many) <= _LARGE:
        yield many
    yield from (dict.fromkeys(sizes, rows) for rows in limits.rows if sizes)


def without_elements(sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Sizes of zero: all of them that may be, and each of the first by itself."""
    if feeds_no_empty():
        return
    names = [name for name in sizes if name not in never_zero()]
    if names:
        yield {**sizes, **dict.fromkeys(names, 0)}
    if len(names) > 1:
        yield from ({**sizes, name: 0} for name in islice(names, _MOST_WITHOUT))


def _with_more(specs: Sequence[InputSpec], sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Multiples of sizes, to have enough elements for every kind of value; nothing where there are enough already."""
    for factor in range(1, _SOME + 1):
        more = {name: size * factor for name, size in sizes.items()}
        if _count(specs, more) >= _SOME:
            if factor > 1:
                yield more
            return


def _of_one(sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Each free size one, and the others more, or each more and the others one: some operators take no other."""
    if len(sizes) > 1:
        yield from ({**sizes, name: 1} for name in sizes)
        yield from ({**dict.fromkeys(sizes, 1), name: size} for name, size in sizes.items() if size > 1)


def _around(specs: Sequence[InputSpec], sizes: Mapping[str, int], limits: Limits) -> Iterator[dict[str, int]]:
    """For free sizes, the next ones, and either side of the positions and counts held, in all of them or in one.

    What a window leaves over, or a step, depends on the size that it moves along.
    """
    if not sizes or limits.is_carried:
        return
    distinct = next(bindings(specs))
    for step in range(1, min(limits.least, _NEXT) + 1):
        yield {name: max(size, limits.least) + step for name, size in distinct.items()}
    for size in sorted({bound + step for bound in limits.bounds for step in (-1, 0, 1, 2)}):
        everywhere = dict.fromkeys(sizes, size)
        if _count(specs, everywhere) <= _MAXIMUM // 4:
            yield everywhere
        else:
            for name in sizes:
                beside_two, beside_one = ({**dict.fromkeys(sizes, other), name: size} for other in (2, 1))
                yield beside_two if _count(specs, beside_two) <= _MAXIMUM else beside_one


def _held(specs: Sequence[InputSpec], sizes: Mapping[str, int], limits: Limits) -> Iterator[dict[str, int]]:
    """For free sizes, those that the region asks for, for where no other fits.

    As many paddings as there are sides. Sizes that it holds: for all, as of a Reshape to rows of five; as the product
    of two neighbours, as where heads of attention are put together; for one alone.
    """
    ranks = {spec.name: len(spec.dims or ()) for spec in specs}
    padded = {name: role.data for name, role in limits.roles.items() if role.kind == "pad"}
    padding = [(spec.dims[0], 2 * ranks.get(padded.get(spec.name, ""), 0)) for spec in specs if spec.dims]
    if lengths := {dim or "axis 0": length for dim, length in padding if length and not isinstance(dim, int)}:
        yield {**sizes, **lengths}
    for size in sorted(limits.sizes):
        if not 1 < size <= _LARGE or not sizes:
            continue
        if size <= FED:
            yield dict.fromkeys(sizes, size)
        factor = next((number for number in range(isqrt(size), 1, -1) if size % number == 0), 1)
        yield from ({**sizes, one: factor, other: size // factor} for one, other in pairwise(sizes))
        yield from ({**dict.fromkeys(sizes, 1), name: size} for name in sizes)


def _like_the_others(specs: Sequence[InputSpec]) -> Iterator[dict[str, int]]:
    """For free sizes, what each other input of as many dimensions declares along the same axes."""
    for other in specs:
        found: dict[str, int] = {}
        for spec in specs:
            if len(spec.dims or ()) == len(other.dims or ()):
                for at, (dim, declared) in enumerate(zip(spec.dims or (), other.dims or (), strict=True)):
                    if not isinstance(dim, int) and isinstance(declared, int):
                        found[dim or f"axis {at}"] = declared
        if found:
            yield found


def _count(specs: Sequence[InputSpec], sizes: Mapping[str, int]) -> int:
    """Elements of the largest input."""
    return max(int(np.prod(_shape(spec, sizes), dtype=np.int64)) for spec in specs)


def _shape(spec: InputSpec, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(dim if isinstance(dim, int) else sizes[dim or f"axis {at}"] for at, dim in enumerate(spec.dims or ()))


def _kinds(fillings: Mapping[str, Filling], *, small: bool, few: bool) -> list[str]:
    every = dict.fromkeys(kind for filling in fillings.values() for kind in filling.kinds)
    chosen = _AT_OTHER_SIZES if not small else _FEW if few else every
    return [kind for kind in chosen if kind in every and kind not in (FAR_UP, FAR_DOWN)]


def _every_row(feeder: _Feeder, sizes: Mapping[str, int], accepts: Accepts) -> Iterator[Case]:
    """Every index of the tables that the region holds, as many at a time as an input takes."""
    for spec in feeder.specs:
        free = [dim or f"axis {at}" for at, dim in enumerate(spec.dims or ()) if not isinstance(dim, int)][:1]
        for rows in _parts(spec, feeder.limits):
            each = prod(dim for dim in spec.dims or () if isinstance(dim, int))
            fitting = {**dict.fromkeys(sizes, 1), **dict.fromkeys(free, -(-len(rows) // each))}
            shapes = {other.name: _shape(other, fitting) for other in feeder.specs}
            found = replace(feeder, shapes=shapes).fitting(accepts)
            if found is None:
                break
            filled = np.resize(rows, shapes[spec.name]).astype(helper.tensor_dtype_to_np_dtype(spec.element_type))
            yield Case(f"indices from {rows[0]}", {**found[1], spec.name: filled})


def _parts(spec: InputSpec, limits: Limits) -> list[range]:
    """The rows of a table, as many at a time as an input names; nothing where that takes too many runs."""
    table = limits.table(spec.name)
    each = prod(dim for dim in spec.dims or () if isinstance(dim, int))
    if table is None or not each:
        return []
    is_free = any(not isinstance(dim, int) for dim in spec.dims or ())
    rows = min(_LARGE, _TAKEN * table // max(limits.elements(spec.name), 1))
    step = max(rows // each, 1) * each if is_free else each
    parts = range(0, table, step)
    return [range(start, min(start + step, table)) for start in parts] if len(parts) <= _MOST_PARTS else []


def reads_every_row(spec: InputSpec, limits: Limits) -> bool:
    """Whether an input of a region is fed every index of a table that the region holds."""
    return bool(_parts(spec, limits))


def _truths(feeder: _Feeder, where: Mapping[str, Values]) -> Iterator[Case]:
    """Every combination of truth values of the bool inputs, with the others ordinary."""
    bools = [spec.name for spec in feeder.specs if spec.element_type == TensorProto.BOOL][:_TRUTHS]
    # A mask may hide the few elements that are special, so they are tried under either truth value.
    special = ("NaN", "infinity") if any("NaN" in filling.kinds for filling in feeder.fillings.values()) else ()
    for number in range(2 ** len(bools) if bools else 0):
        truths = {name: "true" if number >> at & 1 else "false" for at, name in enumerate(bools)}
        label = ", ".join(f"{name} {truth}" for name, truth in truths.items())
        for at, kind in enumerate(("random", "wide", *special)):
            yield _case(kind, label, feeder.feeds(where, truths, kind, 1000, number, at))


def _far_apart(feeder: _Feeder, where: Mapping[str, Values]) -> Iterator[Case]:
    """One input far above one and the others far below, and the other way round: what is ordinary in the product."""
    floats = [name for name, filling in feeder.fillings.items() if FAR_UP in filling.kinds and name not in where]
    for at, name in enumerate(floats[:_TRUTHS] if len(floats) > 1 else ()):
        for own, others in ((FAR_UP, FAR_DOWN), (FAR_DOWN, FAR_UP)):
            feeds = feeder.feeds(where, {**dict.fromkeys(floats, others), name: own}, "random", 3000, at)
            yield Case(f"{name!r} {own} and others {others}", feeds, is_far=True)


def _special_alone(feeder: _Feeder, where: Mapping[str, Values]) -> Iterator[Case]:
    """NaN in one of several inputs: in all of them, they may hide each other."""
    special = [name for name, filling in feeder.fillings.items() if "NaN" in filling.kinds and name not in where]
    for at, name in enumerate(special if len(feeder.specs) > 1 else ()):
        feeds = feeder.feeds(where, {name: "NaN"}, "random", 2000, at)
        yield Case(f"NaN in {name!r}", feeds, is_special=True, is_far=True)
