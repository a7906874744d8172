"""Finds up to which magnitude a form that overflows earlier than the operator gives what the operator gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from reducelower.numerics.measure import is_float
from reducelower.verification.running.runtimes import Session
from reducelower.verification.running.source import CannotRunError

__all__ = ["largest_kept"]

_STEPS = 24
"""Halvings: the range of double has 2048 octaves, and a thousandth of one is told."""


def largest_kept(before: Session, after: Session, feeds: Mapping[str, Any], lost: float, kept: float) -> float:
    """The largest magnitude of inputs, to three digits, of which nothing that is finite before is lost after.

    Args:
        before: runs the operator.
        after: runs the form.
        feeds: inputs of which something is lost; their magnitudes are scaled, without their signs.
        lost: the magnitude of these.
        kept: a magnitude of which nothing was lost.

    Returns:
        The magnitude; 0 where nothing is lost of the magnitudes alone, or a side does not run.
    """

    def loses(top: float) -> bool:
        scaled = {name: _scaled(value, top / lost) for name, value in feeds.items()}
        pairs = zip(before.run(scaled, None), after.run(scaled, None), strict=True)
        return any(
            isinstance(one, np.ndarray)
            and isinstance(other, np.ndarray)
            and is_float(one)
            and one.shape == other.shape
            and bool((np.isfinite(one) & ~np.isfinite(other)).any())
            for one, other in pairs
        )

    low, high = kept, lost
    try:
        if not loses(high) or loses(low):
            return 0.0
        for _ in range(_STEPS):
            middle = float(np.sqrt(low) * np.sqrt(high))
            low, high = (low, middle) if loses(middle) else (middle, high)
    except CannotRunError:
        return 0.0
    return low


def _scaled(value: Any, factor: float) -> Any:
    if not isinstance(value, np.ndarray) or not is_float(value):
        return value
    return (np.abs(value.astype(np.float64)) * factor).astype(value.dtype)
