"""What a Reshape becomes where a zero means the size of the data there: exactly the same, without asking at run time.

A zero in the target is a size of zero under allowzero, and a copy of the data's own size without. With sizes as
polynomials over names, it mostly shows that both mean the same, or that a constant says it. Every form here gives what
the Reshape with allowzero gives wherever that has a result, also for data without elements.

Source: https://onnx.ai/onnx/operators/onnx__Reshape.html (13, 14); onnxruntime 1.23 takes a zero beside -1 under
allowzero, against the page, and such models run as before, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

from reducelower.types.known import Elements, Known, Shape
from reducelower.types.sizes import Size, is_positive, makes_zero, over

__all__ = ["PlainReshape", "plain_reshape"]

_MOST_AXES = 8
"""Shapes with more axes get no ones inserted: there would be many places to try."""


@dataclass(frozen=True)
class PlainReshape:
    """A Reshape without allowzero.

    Attributes:
        target: the constant target; None for the computed one, as it is.
        ahead: axes of size 1 that the data gets before.
        behind: axes of size 1 that the result loses afterwards.
    """

    target: tuple[int, ...] | None
    ahead: tuple[int, ...] = ()
    behind: tuple[int, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether nothing but the Reshape is needed."""
        return not self.ahead and not self.behind


def plain_reshape(
    data: Known, target: Known, result: Known, never_zero: Collection[int] = (), *, is_empty_never: bool = False
) -> PlainReshape | None:
    """The Reshape that means the same without allowzero; None if what is known decides nothing.

    Args:
        data: what is known about the data.
        target: what is known about the target shape.
        result: what is known about the result.
        never_zero: atoms that are not zero.
        is_empty_never: whether no dimension is zero.
    """
    wanted = target.elements
    if wanted is None:
        if result.shape is not None and data.shape is not None:
            constant = _constant(data.shape, result.shape)
            if constant is not None:
                return PlainReshape(constant)
        return PlainReshape(None) if is_empty_never else None
    own = wanted.index(-1) if -1 in wanted else None
    sizes, given = _worked_out(data.shape, wanted, own), data.shape or ()
    zero = _Zeros(never_zero, is_empty_never)
    for shape in (sizes, result.shape):
        if shape is not None and (constant := _constant(given, shape)) is not None:
            return PlainReshape(constant)
    entries = [_entry(given, axis, size) for axis, size in enumerate(sizes)]
    found = _with_one_open(given, sizes, entries, own, zero)
    if found is None and own is not None:
        # Its -1 says that no size is zero, but onnxruntime takes zeros beside it, and copies go on doing so.
        aligned = _with_ones(given, sizes, zero)
        found = aligned if aligned is not None and aligned.target is not None else PlainReshape(None)
    found = found or _as_it_is(given, sizes, zero) or _with_ones(given, sizes, zero)
    return found or (PlainReshape(None) if is_empty_never else None)


@dataclass(frozen=True)
class _Zeros:
    """What is known of zeros."""

    never_zero: Collection[int]
    is_empty_never: bool

    def is_impossible(self, size: Size | None) -> bool:
        """Whether a size is not zero."""
        if isinstance(size, int):
            return size > 0
        return self.is_empty_never or (size is not None and is_positive(size, self.never_zero))

    def is_copied(self, data: Shape, axis: int, size: Size | None) -> bool:
        """Whether a computed size means the same as a zero that copies the data's: it is zero only where that is."""
        if self.is_impossible(size):
            return True
        own = data[axis] if axis < len(data) else None
        return size is not None and own is not None and makes_zero(size, own)


def _worked_out(data: tuple[Size, ...] | None, wanted: Elements, own: int | None) -> Shape:
    """The sizes of the result, with None for one that is not known."""
    found: list[Size | None] = list(wanted)
    if own is not None:
        others = [size for axis, size in enumerate(wanted) if axis != own]
        known = [size for size in others if size is not None]
        is_told = data is not None and len(known) == len(others)
        found[own] = over(prod(data or ()), prod(known)) if is_told else None
    return tuple(found)


def _entry(data: Shape, axis: int, size: Size | None) -> int | None:
    """The constant that stands for a size: a positive number, or zero for a copy of the data's."""
    if isinstance(size, int) and size > 0:
        return size
    return 0 if size is not None and axis < len(data) and data[axis] == size else None


def _constant(data: Shape, sizes: Shape) -> tuple[int, ...] | None:
    entries = tuple(_entry(data, axis, size) for axis, size in enumerate(sizes))
    return None if None in entries else tuple(entry for entry in entries if entry is not None)


def _with_one_open(
    data: Shape, sizes: Shape, entries: Sequence[int | None], own: int | None, zero: _Zeros
) -> PlainReshape | None:
    """A constant with -1 for the only size that no constant says."""
    left = [axis for axis, entry in enumerate(entries) if entry is None]
    if len(left) != 1:
        return None
    others = [size for axis, size in enumerate(sizes) if axis != left[0]]
    # Beside a copy of zero, -1 has no meaning. Where the target itself has it there, it has none already.
    if left[0] != own and not all(map(zero.is_impossible, others)):
        return None
    return PlainReshape(tuple(-1 if entry is None else entry for entry in entries))


def _as_it_is(data: Shape, sizes: Shape, zero: _Zeros) -> PlainReshape | None:
    """The computed target, in which each zero copies a zero."""
    return PlainReshape(None) if all(zero.is_copied(data, axis, size) for axis, size in enumerate(sizes)) else None


def _with_ones(data: Shape, sizes: Shape, zero: _Zeros) -> PlainReshape | None:
    """Ones inserted into the data or the result, so that sizes that may be zero stand where the data has them."""
    if len(data) > _MOST_AXES or len(sizes) > _MOST_AXES:
        return None
    for ahead, behind in ((1, 0), (0, 1), (2, 0), (0, 2), (1, 1)):
        for before, wide in _widened(data, ahead):
            for after, target in _widened(sizes, behind):
                if not all(zero.is_copied(wide, axis, size) for axis, size in enumerate(target)):
                    continue
                constant = _constant(wide, target)
                if constant is not None or not behind:
                    return PlainReshape(constant, before, after)
    return None


def _widened(sizes: Shape, count: int) -> Iterator[tuple[tuple[int, ...], Shape]]:
    """Every way to insert ones: their places, and the sizes with them."""
    rank = len(sizes) + count
    for places in combinations(range(rank), count):
        rest = iter(sizes)
        yield places, tuple(1 if axis in places else next(rest) for axis in range(rank))
