"""Inputs for which what computes a value gives given numbers, found by trying many and halving what is between."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reducelower.numerics.measure import Array, is_float, smallest_and_eps
from reducelower.verification.feeding.battery import Case
from reducelower.verification.running.source import CannotRunError

__all__ = ["aimed"]

_AIMS = 12  # numbers that are aimed at
_BESIDE = (*range(17), 24, 32, 48, 64)  # places from where the number is met
_LADDER = np.unique(
    np.concatenate([np.linspace(-24, 24, 193), *([-(2.0**exponent), 2.0**exponent] for exponent in range(-20, 18))])
)

Probe = Callable[[Mapping[str, Any]], Array]


def aimed(probe: Probe, base: Mapping[str, Any], movable: Sequence[str], numbers: Sequence[float]) -> Iterator[Case]:
    """Sets of inputs of which a value is as near to each number as possible, from either side, or is that number.

    Args:
        probe: computes the value of inputs.
        base: inputs that are taken.
        movable: those of the inputs, floats or integers, that may be anything.
        numbers: what is aimed at; those that the value does not reach are left out.
    """
    for name in movable:
        for place in (None, 0, -1):  # all elements of the input at once, each by its own; one of them alone
            mover = _Mover.of(probe, base, name, place)
            left = _AIMS
            for number in numbers if mover is not None else ():
                found = mover.towards(number) if left and mover is not None else None
                if found is not None and mover is not None:
                    left -= 1
                    yield from (Case(f"values near {number:g} inside", mover.feeds(found + step)) for step in _STEPS)


_STEPS = tuple(dict.fromkeys(step for beside in _BESIDE for step in (beside, -beside)))


@dataclass(frozen=True)
class _Mover:
    """Moves one input, all elements of it or the one at a place, and sees how the value moves.

    What is moved is counted: by the places of floats in their order, by integers themselves.
    """

    probe: Probe
    base: Mapping[str, Any]
    name: str
    place: int | None
    ladder: Array
    seen: Array

    @staticmethod
    def of(probe: Probe, base: Mapping[str, Any], name: str, place: int | None) -> _Mover | None:
        """One that has tried a few hundred numbers; None where the value does not move."""
        value = base[name]
        if not value.size:
            return None
        ladder = _counted(_within(value.dtype), value.dtype)
        blank = _Mover(probe, base, name, place, ladder, np.zeros(0))
        seen = []
        for count in ladder:
            try:
                seen.append(blank.given(np.full(value.shape if place is None else (), count)))
            except CannotRunError:
                return None
        if len({item.shape for item in seen}) != 1 or (place is None and seen[0].shape != value.shape):
            return None
        found = np.stack(seen).astype(np.float64)
        moves = (found != found[:1]).any()
        return _Mover(probe, base, name, place, ladder, found) if moves else None

    def feeds(self, counts: Array) -> dict[str, Any]:
        """The inputs with the moved one as counted."""
        value = self.base[self.name]
        moved = _uncounted(counts, value.dtype)
        if self.place is not None:
            one, moved = moved, value.copy()
            moved.reshape(-1)[self.place] = one
        return {**self.base, self.name: moved}

    def given(self, counts: Array) -> Array:
        """What the value then is."""
        return self.probe(self.feeds(counts))

    def towards(self, number: float) -> Array | None:
        """Where the value meets a number; None where it does not."""
        for reaches in (np.greater_equal, np.greater):
            with np.errstate(invalid="ignore"):
                above, off = reaches(self.seen, number), np.abs(self.seen - number)
            crosses = (above[1:] != above[:-1]) & np.isfinite(self.seen[1:]) & np.isfinite(self.seen[:-1])
            if not crosses.any():
                continue
            element: Any = ...
            at: Any = np.where(crosses, np.minimum(off[1:], off[:-1]), np.inf).argmin(axis=0)
            if self.place is not None:
                element = np.unravel_index(crosses.any(axis=0).argmax(), crosses.shape[1:])
                at = at[element]
            low, high = self.ladder[at], self.ladder[at + 1]
            start = np.take_along_axis(above, np.expand_dims(at, 0), 0)[0] if element is ... else above[(at, *element)]
            try:
                while (high - low > 1).any():
                    middle = low + (high - low) // 2
                    same = reaches(self.given(middle)[element].astype(np.float64), number) == start
                    low, high = np.where(same, middle, low), np.where(same, high, middle)
            except CannotRunError:
                return None
            return np.asarray(high)
        return None


def _within(dtype: np.dtype[Any]) -> Array:
    """The numbers to try first that an element type has."""
    if is_float(np.zeros(0, dtype)):
        return np.asarray(_LADDER[np.abs(_LADDER) < smallest_and_eps(dtype)[2]].astype(dtype))
    ends = np.iinfo(dtype)
    whole = np.unique(np.concatenate([np.arange(-300, 301), _LADDER[np.abs(_LADDER) >= 1].astype(np.int64)]))
    return whole[(whole >= ends.min) & (whole <= ends.max)].astype(dtype)


def _counted(values: Array, dtype: np.dtype[Any]) -> Array:
    """Floats by their place in the order of all; integers as they are."""
    if not is_float(values):
        return np.unique(values.astype(np.int64))
    bits = values.view(f"i{dtype.itemsize}").astype(np.int64)
    return np.unique(np.where(bits < 0, _lowest(dtype) - np.minimum(bits, 0), bits))


def _uncounted(counts: Array, dtype: np.dtype[Any]) -> Array:
    """The values that were counted."""
    if not is_float(np.zeros(0, dtype)):
        ends = np.iinfo(dtype)
        return np.asarray(np.clip(counts, ends.min, min(ends.max, 2**62)).astype(dtype))
    bits = np.where(counts < 0, _lowest(dtype) - np.minimum(counts, 0), counts)
    return np.asarray(bits.astype(f"i{dtype.itemsize}").view(dtype))


def _lowest(dtype: np.dtype[Any]) -> int:
    """The bits of minus zero, as a number."""
    return int(-(2 ** (8 * dtype.itemsize - 1)))
