"""What rounding alone may do to each element of a result, found by moving the inputs in their last places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from reducelower.numerics.measure import Array, Difference, is_float, measure, smallest_and_eps
from reducelower.numerics.tolerance import Tolerance
from reducelower.verification.runtimes import Session
from reducelower.verification.source import CannotRunError

__all__ = ["Moves", "disturbed", "explained", "moved_by", "widened"]

Moves = Mapping[str, Array]
"""By tensor name, how far each element moved."""

_SENSITIVITY = 16.0  # a rewrite may disturb more places than the inputs alone
_STEPS = np.array([-2.0, -1.0, 1.0, 2.0])  # ULP
_DRAWS = 4  # by chance one draw may leave an element where it is
_MOST_FLIPPED = 0.01


def disturbed(feeds: Mapping[str, Any], seed: Sequence[int]) -> Iterator[dict[str, Any]]:
    """The same inputs with every float moved by one or two last places, several times over."""
    if not any(isinstance(value, np.ndarray) and is_float(value) and value.size for value in feeds.values()):
        return
    for draw in range(_DRAWS):
        rng = np.random.default_rng([*seed, draw, 1])
        yield {name: _moved(value, rng) for name, value in feeds.items()}


def _moved(value: Any, rng: np.random.Generator) -> Any:
    if not (isinstance(value, np.ndarray) and is_float(value)):
        return value
    _, eps, _ = smallest_and_eps(value.dtype)
    wide = value.astype(np.float64 if value.dtype.itemsize < 8 else np.longdouble)
    with np.errstate(all="ignore"):
        return (wide * (1 + eps * rng.choice(_STEPS, value.shape))).astype(value.dtype)


def widened(moves: dict[str, Array], name: str, before: Array, after: Array) -> None:
    """Note how far the elements of one tensor moved, if that is farther than before."""
    if before.shape != after.shape or not (is_float(before) or before.dtype.kind in "iu"):
        return
    wide = np.longdouble if before.dtype.itemsize == 8 else np.float64
    with np.errstate(all="ignore"):
        move = np.abs(before.astype(wide) - after.astype(wide))
    # A value that a last place turns into an infinity excuses nothing.
    move = np.where(np.isfinite(move), move, 0)
    moves[name] = np.maximum(moves[name], move) if name in moves else move


def moved_by(
    session: Session, feeds: Mapping[str, Any], results: Sequence[Any], seed: Sequence[int]
) -> dict[str, Array]:
    """How far the elements of each result move, by the number of the result."""
    moves: dict[str, Array] = {}
    for other in disturbed(feeds, seed):
        try:
            again = session.run(other)
        except CannotRunError:
            continue
        for at, (left, right) in enumerate(zip(results, again, strict=True)):
            if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
                widened(moves, str(at), left, right)
    return moves


def explained(before: Array, after: Array, tolerance: Tolerance, move: Array | None) -> Difference:
    """Measure again with what the source's own conditioning allows each element.

    An element may be off by a multiple of what last places of the inputs do to itself. Beyond that, no more than one
    in a hundred may be off by what they do to the element they move most: where a value is rounded to a step, another
    form may round to the neighbouring one.
    """
    if move is None or move.shape != before.shape or not np.any(move > 0):
        return measure(before, after, tolerance)
    exact = not is_float(before)
    found = measure(before, after, tolerance, allowance=move if exact else _SENSITIVITY * move)
    if not found.mismatch or found.elements is None or found.lost:
        return found
    flipped = measure(before, after, tolerance, allowance=move.max())
    few = found.outside <= _MOST_FLIPPED * before.size
    return flipped if few and not flipped.mismatch else found
