"""Values beside the steps of a region: where what it gives jumps is found by halving, and tried on either side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from reducelower.numerics.measure import Array, is_float
from reducelower.verification.feeding.battery import Case
from reducelower.verification.running.runtimes import Session
from reducelower.verification.running.source import CannotRunError

__all__ = ["beside_steps"]

_HALVED = 14
_TRIED = (8, 11, 14)  # after so many halvings, a 250th to a 16,000th of the way from one value to the other


def beside_steps(source: Session, cases: Sequence[Case]) -> Iterator[Case]:
    """Inputs on either side of jumps between two sets of inputs, element by element.

    The source computes each element of an output from those in the same place. Of the sets of inputs that it was run
    on, the two largest of the same sizes are taken.
    """
    ends = _ends(cases)
    if ends is None:
        return
    low, high = ends
    try:
        results = source.run(low)
        shapes = {value.shape for value in low.values() if is_float(value)}
        fitting = (at for at, value in enumerate(results) if isinstance(value, np.ndarray) and value.shape in shapes)
        at = next(fitting, -1)
        if at < 0:
            return
        start = results[at]
        moving = {name for name, value in high.items() if is_float(value) and value.shape == start.shape}
        high = {name: value if name in moving else low[name] for name, value in high.items()}
        for count in range(1, _HALVED + 1):
            middle = {name: _middle(value, high[name]) for name, value in low.items()}
            found = source.run(middle)[at]
            if found.shape != start.shape:
                return  # as many elements as there were by chance, such as different ones among all
            same = found == start
            low = {name: _where(same, middle[name], value) for name, value in low.items()}
            high = {name: _where(same, value, middle[name]) for name, value in high.items()}
            if count in _TRIED:
                yield Case("values below steps", dict(low))
                yield Case("values above steps", dict(high))
    except CannotRunError:
        return


def _ends(cases: Sequence[Case]) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Two sets of ordinary inputs of the same sizes, as large as there are."""
    plain = [case.feeds for case in cases if case.label.startswith(("random", "mixed values"))]
    plain = [feeds for feeds in plain if feeds and all(isinstance(value, np.ndarray) for value in feeds.values())]
    plain.sort(key=lambda feeds: -max(value.size for value in feeds.values()))
    for one, other in pairwise(plain):
        if [value.shape for value in one.values()] == [value.shape for value in other.values()]:
            return one, other
    return None


def _middle(low: Array, high: Array) -> Array:
    return ((low.astype(np.float64) + high) / 2).astype(low.dtype) if is_float(low) and low is not high else low


def _where(same: Array, one: Array, other: Array) -> Array:
    return np.where(same, one, other) if one.shape == same.shape and one is not other else other
