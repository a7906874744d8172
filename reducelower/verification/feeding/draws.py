"""Draws tensors of a shape: from pools of values, between bounds, near constants; an input is filled with these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from reducelower.numerics.measure import Array

__all__ = [
    "Maker",
    "any_of",
    "beside",
    "between",
    "in_order",
    "joined",
    "mixed",
    "normal",
    "scaled",
    "sprinkled",
    "ties",
]

Maker = Callable[[tuple[int, ...], np.random.Generator], Array]


def sprinkled(*specials: float) -> Maker:
    """Ordinary doubles, a fifth of them replaced by special values; each of these occurs if the shape has room."""

    def draw(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        count = int(np.prod(shape))
        values = np.where(rng.random(count) < 0.2, rng.choice(np.array(specials), count), rng.standard_normal(count))
        places = rng.permutation(count)[: len(specials)]
        values[places] = rng.permutation(specials)[: len(places)]
        return values.reshape(shape)

    return draw


def joined(pool: Array) -> Maker:
    """Strings that are up to thirty strings of the pool joined."""

    def draw(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        made = ["".join(rng.choice(pool, rng.integers(1, 31))) for _ in range(prod(shape))]
        return np.array(made, object).reshape(shape)

    return draw


def any_of(values: Sequence[float] | Array) -> Maker:
    """Any of these values, everywhere."""
    return lambda shape, rng: rng.choice(np.array(values), shape)


def mixed(values: Sequence[float]) -> Maker:
    """Ordinary values, and some of these values at about 40% of the places."""

    def draw(shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        ordinary = rng.standard_normal(shape)
        return np.where(rng.random(shape) < 0.4, rng.choice(np.array(values), shape), ordinary)

    return draw


def in_order(values: Array) -> Maker:
    """The values in order, repeated to fill the shape."""
    return lambda shape, rng: np.resize(values, shape)


def between(least: float, most: float) -> Maker:
    """Values between two bounds."""
    return lambda shape, rng: rng.uniform(least, most, shape)


def normal(deviation: float) -> Maker:
    """Normally distributed values around zero."""
    return lambda shape, rng: rng.standard_normal(shape) * deviation


def scaled(end: float, least: float = 0.9) -> Maker:
    """Values just within an end, so that their means too lie on one side of a constant."""
    return lambda shape, rng: rng.uniform(least, 1.0, shape) * end


def ties(step: float) -> Maker:
    """Small multiples of half a step: dividing them by the step is exact, so rounding breaks no ties."""
    pool = step * np.array([0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0])
    return lambda shape, rng: rng.choice(pool, shape, p=[0.3, 0.3, *[0.4 / 6] * 6])


def beside(values: Sequence[float]) -> Maker:
    """These values, off by a tenth to a millionth of their size."""

    def draw(shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        distance = 10.0 ** rng.uniform(-6, -1, shape) * rng.choice([-1.0, 1.0], shape)
        return rng.choice(np.array(values), shape) * (1 + distance)

    return draw
