"""Write a Reshape with allowzero without it, exactly and without branches at run time.

Under allowzero, a zero in the target is a size of zero; without it, a copy of the data's size. With sizes as
polynomials over names, one can mostly show that both mean the same, or find a constant target. Every form here gives
the same result as the Reshape with allowzero wherever that has one, also for data without elements.

Source: https://onnx.ai/onnx/operators/onnx__Reshape.html (13, 14). Against the page, onnxruntime 1.23 takes a zero
beside -1 under allowzero; such models also run as before.
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
"""Most axes of shapes into which ones are inserted; more would have too many places to try."""


@dataclass(frozen=True)
class PlainReshape:
    """A Reshape without allowzero.

    Attributes:
        target: the constant target; None to keep the computed one.
        ahead: axes of size 1 to insert into the data before.
        behind: axes of size 1 to remove from the result afterwards.
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
    """The Reshape that means the same without allowzero; None if too little is known.

    Args:
        data: what is known about the data.
        target: what is known about the target shape.
        result: what is known about the result.
        never_zero: atoms that are not zero.
        is_empty_never: whether no dimension is zero.
    """
    elements = target.elements
    if elements is None:
        if result.shape is not None and data.shape is not None:
            constant = _constant(data.shape, result.shape)
            if constant is not None:
                return PlainReshape(constant)
        return PlainReshape(None) if is_empty_never else None
    inferred = elements.index(-1) if -1 in elements else None
    sizes, before = _result_sizes(data.shape, elements, inferred), data.shape or ()
    zero = _Zeros(never_zero, is_empty_never)
    for shape in (sizes, result.shape):
        if shape is not None and (constant := _constant(before, shape)) is not None:
            return PlainReshape(constant)
    entries = [_entry(before, axis, size) for axis, size in enumerate(sizes)]
    plain = _with_one_inferred(before, sizes, entries, inferred, zero)
    if plain is None and inferred is not None:
        # A -1 in the target means that no size is zero, but onnxruntime takes zeros beside it. Copies keep that so.
        aligned = _with_ones(before, sizes, zero)
        plain = aligned if aligned is not None and aligned.target is not None else PlainReshape(None)
    plain = plain or _unchanged(before, sizes, zero) or _with_ones(before, sizes, zero)
    return plain or (PlainReshape(None) if is_empty_never else None)


@dataclass(frozen=True)
class _Zeros:
    """Decides whether sizes may be zero."""

    never_zero: Collection[int]
    is_empty_never: bool

    def is_impossible(self, size: Size | None) -> bool:
        """Whether a size is not zero."""
        if isinstance(size, int):
            return size > 0
        return self.is_empty_never or (size is not None and is_positive(size, self.never_zero))

    def is_copied(self, data: Shape, axis: int, size: Size | None) -> bool:
        """Whether a computed size means the same without allowzero: if it is zero, a zero also copies a zero."""
        if self.is_impossible(size):
            return True
        own = data[axis] if axis < len(data) else None
        return size is not None and own is not None and makes_zero(size, own)


def _result_sizes(data: tuple[Size, ...] | None, elements: Elements, inferred: int | None) -> Shape:
    """The sizes of the result, with None for unknown ones; `inferred` is the axis of -1 in the target."""
    sizes: list[Size | None] = list(elements)
    if inferred is not None:
        others = [size for axis, size in enumerate(elements) if axis != inferred]
        known = [size for size in others if size is not None]
        are_known = data is not None and len(known) == len(others)
        sizes[inferred] = over(prod(data or ()), prod(known)) if are_known else None
    return tuple(sizes)


def _entry(data: Shape, axis: int, size: Size | None) -> int | None:
    """The constant that stands for a size: a positive number, or zero for a copy of the data's."""
    if isinstance(size, int) and size > 0:
        return size
    return 0 if size is not None and axis < len(data) and data[axis] == size else None


def _constant(data: Shape, sizes: Shape) -> tuple[int, ...] | None:
    entries = tuple(_entry(data, axis, size) for axis, size in enumerate(sizes))
    return None if None in entries else tuple(entry for entry in entries if entry is not None)


def _with_one_inferred(
    data: Shape, sizes: Shape, entries: Sequence[int | None], inferred: int | None, zero: _Zeros
) -> PlainReshape | None:
    """A constant target with -1 for the only size that has no constant entry."""
    left = [axis for axis, entry in enumerate(entries) if entry is None]
    if len(left) != 1:
        return None
    others = [size for axis, size in enumerate(sizes) if axis != left[0]]
    # Beside a copied zero, -1 has no meaning. If the target itself has -1 there, it already has none.
    if left[0] != inferred and not all(map(zero.is_impossible, others)):
        return None
    return PlainReshape(tuple(-1 if entry is None else entry for entry in entries))


def _unchanged(data: Shape, sizes: Shape, zero: _Zeros) -> PlainReshape | None:
    """The computed target, if each zero in it copies a zero."""
    return PlainReshape(None) if all(zero.is_copied(data, axis, size) for axis, size in enumerate(sizes)) else None


def _with_ones(data: Shape, sizes: Shape, zero: _Zeros) -> PlainReshape | None:
    """Insert ones into the data or the result, so that sizes that may be zero are at the same place in both."""
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
