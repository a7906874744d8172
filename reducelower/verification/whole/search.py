"""More inputs for whole models of which a region differs by itself, and not on what its surroundings gave it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from reducelower.numerics.measure import is_float

__all__ = ["varied"]

_SETS = 60
_SCALES = (1.0, 10.0, 1000.0, 1e-3)
_EDGES = np.array([0.0, -0.0, 0.5, 2.5, -1.5, 6.5])
_SHARE = 0.1  # of the values
_RANGES = ((-5, 6), (0, 3), (-1000, 1000), (0, 10))


def varied(first: Mapping[str, Any], fixed: Mapping[str, Any], seed: int) -> Iterator[dict[str, Any]]:
    """Sets of inputs of the sizes of one that a model takes: of several magnitudes and ranges; some inputs stay."""
    for at in range(_SETS):
        rng = np.random.default_rng([seed, 301, at])
        yield {name: value if name in fixed else _other(value, at % len(_SCALES), rng) for name, value in first.items()}


def _other(value: Any, kind: int, rng: np.random.Generator) -> Any:
    if not isinstance(value, np.ndarray) or value.dtype.hasobject:
        return value
    if is_float(value):
        drawn = rng.standard_normal(value.shape) * _SCALES[kind]
        edges = rng.random(value.shape) < _SHARE * (kind == 1)
        return np.where(edges, rng.choice(_EDGES, value.shape), drawn).astype(value.dtype)
    if value.dtype == np.bool_:
        return rng.integers(0, 2, value.shape).astype(np.bool_)
    return rng.integers(*_RANGES[kind], value.shape).astype(value.dtype) if value.dtype.kind in "iu" else value
