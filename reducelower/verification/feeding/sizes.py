"""Sizes to try for the free dimensions of inputs, until the source accepts some."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from reducelower.numerics.measure import Array
from reducelower.verification.feeding.limits import Limits
from reducelower.verification.inputs.declared import InputSpec, Named, bound, names_in, shape_at
from reducelower.verification.running.memory import most_elements

__all__ = ["LARGE", "SOME", "Base", "ladder", "of_held", "of_length", "of_region"]

LARGE = 20_000  # elements; above, each kind of value costs more than it is likely to show
SOME = 48  # elements, so that every value of a kind is likely to be among them

# Sizes of batches and of all other symbols. (2, 2) suits models that add or compare tensors of differently named
# dimensions, or take every second element; (1, 1) has the smallest sizes; 60 is divisible by what reshapes mostly ask
# for; the rest suit convolutions and poolings on unnamed sizes.
_LADDER = ((2, 2), (2, 16), (1, 1), (60, 60), (1, 64), (1, 224), (1, 1024))
_DISTINCT = (3, 2, 5, 4, 7, 6, 9, 8)
_BESIDE_HELD = 64  # other sizes than those of batches, when one size is held
_MOST = 20_000_000
"""Elements of one input with free sizes, or 10 times the elements at the smallest sizes if that is more."""


@dataclass(frozen=True)
class Base:
    """Inputs that the source accepts; free sizes are symbols in `dims`, and `sizes` has their values."""

    dims: Named
    sizes: Mapping[str, int]
    feeds: Mapping[str, Array]

    def shapes(self, sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """The shapes of the inputs at these sizes."""
        return {name: shape_at(dims, sizes) for name, dims in self.dims.items()}

    def count(self, sizes: Mapping[str, int] | None = None) -> int:
        """Elements of the largest input, at these sizes or the base's own."""
        return max(map(prod, self.shapes(self.sizes if sizes is None else sizes).values()), default=0)


def ladder(dims: Named, fixed: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """One set of sizes for the free dimensions after another: distinct, all equal, all 1, then larger."""
    free, batches = [name for name in names_in(dims) if name not in fixed], _batches(dims)
    if not free:
        yield dict(fixed)
        return
    count = Base(dims, {}, {}).count
    smallest = dict(fixed) | dict.fromkeys(free, 1)
    most = min(max(_MOST, 10 * count(smallest)), most_elements())
    distinct = dict(smallest)
    for at, name in enumerate(free):
        distinct[name] = _DISTINCT[at % len(_DISTINCT)]
        if count(distinct) > most:
            distinct[name] = 1
    yield distinct
    for batch, other in _LADDER:
        sizes = dict(fixed) | {name: batch if name in batches else other for name in free}
        if count(sizes) <= most:
            yield sizes


def of_length(dims: Named, fixed: Mapping[str, int], length: int) -> Iterator[dict[str, int]]:
    """One of each batch, and this length for all other free dimensions, unless that is too much."""
    batches, free = _batches(dims), [name for name in names_in(dims) if name not in fixed]
    sizes = {**fixed, **{name: 1 if name in batches else length for name in free}}
    if not batches.issuperset(free) and Base(dims, {}, {}).count(sizes) <= _MOST:
        yield sizes


def of_held(dims: Named, fixed: Mapping[str, int], held: Iterable[int]) -> Iterator[dict[str, int]]:
    """Sizes for data that has to fit what a model holds: all free dimensions have a held size, then one at a time."""
    free, batches = [name for name in names_in(dims) if name not in fixed], _batches(dims)
    for size in held if free else ():
        yield {**fixed, **dict.fromkeys(free, size)}
        for other in (1, _BESIDE_HELD):
            beside = {**fixed, **{name: 1 if name in batches else other for name in free}}
            each = ({**beside, name: size} for name in free)
            yield from (sizes for sizes in each if Base(dims, {}, {}).count(sizes) <= _MOST)


def _batches(dims: Named) -> set[str]:
    return {dim for each in dims.values() for dim in each[:1] if isinstance(dim, str)}


def of_region(specs: Sequence[InputSpec], dims: Named, limits: Limits) -> Iterator[dict[str, int]]:
    """Sizes for a region: many elements, the ladder, those that other inputs declare, and those that it holds."""
    first, *others = ladder(dims, {})
    count = Base(dims, {}, {}).count
    more = ({name: size * factor for name, size in first.items()} for factor in range(2, SOME + 1))
    yield from [sizes for sizes in more if count(sizes) >= SOME > count(first)][:1]
    yield first
    yield from others
    yield from (first | like for like in _of_others(specs, dims))
    yield from of_held(dims, {}, sorted(size for size in limits.sizes if 1 < size <= LARGE))


def _of_others(specs: Sequence[InputSpec], dims: Named) -> Iterator[dict[str, int]]:
    """Values for free sizes: what each other input of the same rank declares along the same axes."""
    for other in specs:
        alike = (bound(each, other.dims or ()) for each in dims.values() if len(each) == len(other.dims or ()))
        sizes = {name: size for each in alike for name, size in each.items()}
        if sizes:
            yield sizes
