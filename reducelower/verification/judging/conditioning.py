"""What rounding alone can do to a result: how far its elements move, and whether a region rounds at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from onnx import ModelProto

from reducelower.numerics.measure import Array, Difference, is_float, measure, smallest_and_eps
from reducelower.numerics.tolerance import Tolerance
from reducelower.verification.running.runtimes import OnnxRuntime, Session, try_load, try_run
from reducelower.verification.running.source import Source, with_outputs
from reducelower.verification.running.wider import InDouble

__all__ = ["DRAWS", "Exactness", "Move", "explained", "moved_by"]

_SENSITIVITY = 16.0  # a rewrite may round in more places than the inputs alone
_STEPS = np.array([-2.0, -1.0, 1.0, 2.0])  # ULP
_MOST_FLIPPED = 0.01

DRAWS = 4
"""How often last places are changed: one draw may leave an element in place by chance."""


@dataclass(frozen=True)
class Move:
    """How far each element of a tensor moves, at most, when last places of the inputs change.

    A share of the elements may be `flipped`: off by as much as the farthest moved, though they did not move themselves.
    """

    reach: Array
    flipped: float = _MOST_FLIPPED


def _moved(value: Any, rng: np.random.Generator) -> Any:
    if not (isinstance(value, np.ndarray) and is_float(value)):
        return value
    _, eps, _ = smallest_and_eps(value.dtype)
    wide = value.astype(np.float64 if value.dtype.itemsize < 8 else np.longdouble)
    with np.errstate(all="ignore"):
        return (wide * (1 + eps * rng.choice(_STEPS, value.shape))).astype(value.dtype)


def moved_by(session: Session, feeds: Mapping[str, Any], results: Sequence[Any], *seed: int) -> list[Array | None]:
    """How far the elements of each result move when every float in the inputs moves by one or two last places."""
    if not any(isinstance(value, np.ndarray) and is_float(value) and value.size for value in feeds.values()):
        return []
    rng = np.random.default_rng([*seed, 1])
    others = try_run(session, {name: _moved(value, rng) for name, value in feeds.items()})
    return [_distance(before, after) for before, after in zip(results, others or (), strict=False)]


def _distance(before: Any, after: Any) -> Array | None:
    """How far apart the elements of two tensors of numbers are; None for other values."""
    if not (isinstance(before, np.ndarray) and isinstance(after, np.ndarray)) or before.shape != after.shape:
        return None
    if not (is_float(before) or before.dtype.kind in "iu"):
        return None
    wide = np.longdouble if before.dtype.itemsize == 8 else np.float64
    with np.errstate(all="ignore"):
        move = np.abs(before.astype(wide) - after.astype(wide))
    return np.where(np.isfinite(move), move, 0)  # if a last place makes a value infinite, that excuses nothing


def explained(before: Array, after: Array, tolerance: Tolerance, move: Move | None) -> Difference:
    """Measure again, allowing each element the error that the source's own conditioning explains.

    An element may be off by a multiple of how far last places move it. Beyond that, a small share of the elements may
    be off by as much as the farthest moved: if values are rounded to steps, another form may round to the next step.
    """
    if move is None or move.reach.shape != before.shape or not np.any(move.reach > 0):
        return measure(before, after, tolerance)
    exact = not is_float(before)
    found = measure(before, after, tolerance, allowance=move.reach if exact else _SENSITIVITY * move.reach)
    if not found.mismatch or found.elements is None or found.lost:
        return found
    farthest = measure(before, after, tolerance, allowance=move.reach.max())
    few = found.outside <= move.flipped * before.size
    return farthest if few and not farthest.mismatch else found


class Exactness:
    """Every inner value of both sides of a region, in its own type and in double; loaded when first asked."""

    def __init__(self, *sides: ModelProto) -> None:
        """Take the sides; nothing is loaded yet."""
        self._sides = sides

    @cached_property
    def _sessions(self) -> list[tuple[Session | None, Session | None]]:
        shown = [
            with_outputs(side, dict.fromkeys(name for node in side.graph.node for name in node.output if name))
            for side in self._sides
        ]
        return [(try_load(OnnxRuntime(), Source(side)), InDouble.of(side)) for side in shown]

    def holds(self, feeds: Mapping[str, Any]) -> bool:
        """Whether neither side rounds anything, as far as can be seen: every value is the same in double."""
        return all(
            (known := try_run(own, feeds)) is not None
            and (exact := try_run(wide, feeds)) is not None
            and all(map(_is_same, known, exact))
            for own, wide in self._sessions
        )


def _is_same(own: Any, wide: Any) -> bool:
    if not (isinstance(own, np.ndarray) and isinstance(wide, np.ndarray)):
        return False
    return np.array_equal(own.astype(np.float64), wide, equal_nan=True) if is_float(own) else np.array_equal(own, wide)
