"""Fills one input of a region: ordinary and edge values of its type, and values on both sides of every constant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from reducelower.numerics.measure import Array, is_float, lowest_and_highest, smallest_and_eps
from reducelower.verification.feeding.draws import (
    Maker,
    any_of,
    beside,
    between,
    in_order,
    joined,
    mixed,
    normal,
    scaled,
    sprinkled,
    ties,
)
from reducelower.verification.feeding.limits import Limits
from reducelower.verification.inputs.made import STRATEGIES, InputSpec, Values, random_array

__all__ = ["FAR_DOWN", "FAR_UP", "WIDE", "Case", "Filling"]

WIDE = 50.0
"""Activations are saturated there."""

FAR_UP, FAR_DOWN = "far above one", "far below one"
"""Values whose squares over- or underflow; a product of one of each is ordinary."""

_CHUNK = 48  # numbers fed at a time: an input of a region mostly has room for so many
_EPSILON = 1e-3  # smaller constants count as an epsilon
_SUMMED = 64  # so many integers have a sum in range
_POWER = 8  # this power of the integers fed is in range, where powers are computed
_LEAST_HIGHEST = 9  # single digits are fed anyway
_REPEATED = 16_381  # elements, a prime number, after which the values of a large tensor repeat


@dataclass(frozen=True)
class Case:
    """One set of inputs, with a label that says what it tries; it is special if it has NaN or infinities."""

    label: str
    feeds: dict[str, Array]
    is_special: bool = False


@dataclass(frozen=True)
class Filling:
    """Makes values for one input within the limits of its region."""

    spec: InputSpec
    limits: Limits

    @property
    def nonzero(self) -> bool:
        """Whether this input is never fed zero."""
        return self.spec.name in self.limits.divisors

    @property
    def kinds(self) -> Sequence[str]:
        """The kinds of values to try, as words for a label; ``random`` first."""
        return tuple(self._makers)

    def values(self, kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """A tensor of this kind; a random one if the input has no such kind."""
        make = self._makers.get(kind, self._makers["random"])
        if prod(shape) > _REPEATED:
            return np.resize(make((_REPEATED,), rng), shape)
        return np.asarray(make(shape, rng))  # numpy returns scalars for rank 0

    @cached_property
    def _makers(self) -> dict[str, Maker]:
        """A maker for each kind of values that the element type has."""
        if self.spec.element_type == TensorProto.STRING:
            makers = {"random": _plain(TensorProto.STRING, "random")}
            pool = np.array([*self.limits.texts, *map(str.swapcase, self.limits.texts)], object)
            if self.limits.texts:
                makers["strings that are held"] = any_of(pool)
            return makers | {"strings of several": joined(np.array([*pool, "", " ", "a", "Bc"], object))}
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(self.spec.element_type))
        if dtype == np.bool_:
            return {
                "random": lambda shape, rng: rng.integers(0, 2, shape).astype(np.bool_),
                "false": lambda shape, rng: np.zeros(shape, np.bool_),
                "true": lambda shape, rng: np.ones(shape, np.bool_),
            }
        if is_float(np.zeros(0, dtype)):
            return _floats(dtype, self)
        if dtype.kind in "iu":
            return _integers(dtype, self)
        return {values: _plain(self.spec.element_type, values) for values in STRATEGIES}


def _plain(element_type: int, values: Values) -> Maker:
    return lambda shape, rng: random_array(element_type, shape, values, rng)


def _floats(dtype: np.dtype[Any], filling: Filling) -> dict[str, Maker]:
    limits = filling.limits
    subnormal, eps, largest = smallest_and_eps(dtype)
    tiny = subnormal / eps

    def made(draw: Maker) -> Maker:
        def make(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
            with np.errstate(all="ignore"):
                values = np.asarray(draw(shape, rng)).astype(dtype)
            return np.where(values == 0, 1, values).astype(dtype) if filling.nonzero else values

        return make

    near = _near(limits.constants, dtype)
    pool = [0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 1.0, -1.0, 6.5, -11.0, 37.0, -37.0, *near]
    makers: dict[str, Maker] = {
        "random": made(lambda shape, rng: rng.standard_normal(shape)),
        "mixed": made(mixed(pool)),
        "wide": made(lambda shape, rng: rng.uniform(-WIDE, WIDE, shape)),
        "positive": made(lambda shape, rng: rng.uniform(0.1, 1.0, shape)),
        "negative": made(lambda shape, rng: -rng.uniform(0.1, 9.0, shape)),
        "halves": made(lambda shape, rng: rng.integers(-9, 10, shape) / 2),
        "zeros": made(lambda shape, rng: np.zeros(shape)),
        "ones": made(lambda shape, rng: np.ones(shape)),
    }
    if limits.has_steps:
        makers["off steps"] = made(beside(_steps(limits.constants)))
        makers["on steps"] = made(any_of(_steps(limits.constants)))
    if limits.tables:
        makers["from tables"] = made(beside(limits.tables))
        makers |= {f"above tables, {at}": made(in_order(part)) for at, part in _chunks(limits.tables, 1 + 1e-5)}
        makers |= {f"below tables, {at}": made(in_order(part)) for at, part in _chunks(limits.tables, 1 - 1e-5)}
    makers |= {f"keys, {at}": made(in_order(part)) for at, part in _chunks(limits.keys)}
    halfway = [number for number in _between_all(limits.constants) if abs(number) < largest / 4]
    if limits.has_steps and halfway:
        # No value lies on a step, where rounding decides.
        makers["between constants"] = made(any_of(halfway))
    if near:
        makers["around constants"] = made(any_of(near))
    for constant in limits.constants[:4]:
        step = abs(constant) / 2 + 1
        if abs(constant) + step < largest:
            makers[f"at {constant:g}"] = made(scaled(constant, least=1.0))
            makers[f"above {constant:g}"] = made(scaled(constant + step))
            makers[f"below {constant:g}"] = made(scaled(constant - step))
        if limits.has_steps and not float(constant).is_integer():
            makers[f"ties of {constant:g}"] = made(ties(constant))
    for constant in limits.constants:
        if 0 < constant < _EPSILON:
            # Such an epsilon is added to a mean of squares.
            makers[f"roots of {constant:g}"] = made(normal(constant**0.5))
    for element_type in sorted(limits.cast_to):
        integer = np.dtype(helper.tensor_dtype_to_np_dtype(element_type))
        # Most bounds are infinite in float16, and infinities are a kind of their own.
        bounds = np.clip(np.array(lowest_and_highest(integer), np.float64), -largest, largest)
        makers[f"over {integer.name}"] = made(between(*bounds))
    if not limits.rounds_to_integers:
        decades = float(np.log10(largest)) * 0.45
        makers |= {
            "small": made(any_of([tiny, -tiny, 1e-3, subnormal * 3, tiny**0.5])),
            "mixed magnitudes": made(
                lambda shape, rng: 10.0 ** rng.uniform(-decades, decades, shape) * rng.choice([-1.0, 1.0], shape)
            ),
            "large": made(lambda shape, rng: rng.standard_normal(shape) * min(1e3, largest**0.5 / 8)),
            "huge": made(lambda shape, rng: rng.uniform(-0.75, 0.75, shape) * largest),
            # The largest x with a finite exp(x) is log(largest); sums of exponentials overflow around it.
            "around the edge of exp": made(lambda shape, rng: rng.standard_normal(shape) + np.log(largest)),
            "largest": made(any_of([largest, -largest, 0.95 * largest, 0.0])),
            FAR_UP: made(lambda shape, rng: rng.uniform(0.5, 1.0, shape) * largest**0.65),
            FAR_DOWN: made(lambda shape, rng: rng.uniform(0.5, 1.0, shape) * largest**-0.65),
        }
        if not limits.open_to_special:
            makers |= {"infinity": made(sprinkled(np.inf, -np.inf)), "NaN": made(sprinkled(np.nan))}
            makers["only NaN"] = made(lambda shape, rng: np.full(shape, np.nan))  # a maximum may drop a single NaN
    return makers


def _chunks(values: Sequence[float], factor: float = 1.0) -> Iterator[tuple[int, Array]]:
    """The values in chunks, each with its start; every value is multiplied by the factor."""
    for start in range(0, len(values), _CHUNK):
        yield start, np.array(values[start : start + _CHUNK]) * factor


def _steps(constants: Sequence[float]) -> list[float]:
    """Multiples of a half, and of half of each constant."""
    steps = [1.0, *(abs(constant) for constant in constants if constant and abs(constant) < WIDE)]
    return [step * count / 2 for step in steps for count in range(-9, 10)]


def _near(constants: Sequence[float], dtype: np.dtype[Any]) -> list[float]:
    """Every constant, and values on both sides of it."""
    values: list[float] = []
    _, eps, largest = smallest_and_eps(dtype)
    for constant in constants:
        if abs(constant) < largest:
            steps = abs(constant) * eps * 2, abs(constant) * 0.05 + 0.01, abs(constant) * 0.5 + 1
            beside = (constant + sign * step for step in steps for sign in (-1, 1))
            values += [constant, -constant, *(value for value in beside if abs(value) < largest)]
    return values


def _between_all(constants: Sequence[float]) -> list[float]:
    """Values halfway between neighbouring constants, and one beyond each end."""
    ordered = sorted(constants)
    ends = [ordered[0] - abs(ordered[0]) / 2 - 1, ordered[-1] + abs(ordered[-1]) / 2 + 1] if ordered else []
    return [*ends, *(low / 2 + high / 2 for low, high in pairwise(ordered))]


def _integers(dtype: np.dtype[Any], filling: Filling) -> dict[str, Maker]:
    limits, info = filling.limits, np.iinfo(dtype)
    # The lowest integer has no negative, and in some runtimes dividing it by -1 ends the process.
    lowest, highest = (info.min + 1 if info.min and limits.divisors else info.min), info.max
    if limits.open_to_overflow:
        highest = max(int(highest ** (1 / _POWER)), _LEAST_HIGHEST)
        lowest = -highest if info.min else 0

    def drawn(least: int, most: int) -> Maker:
        def make(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
            values = rng.integers(max(least, lowest), min(most, highest), shape, dtype=dtype, endpoint=True)
            return np.where(values == 0, 1, values).astype(dtype) if filling.nonzero else values

        return make

    def chosen(*pool: int) -> Maker:
        kept = [item for item in pool if lowest <= item <= highest and (item or not filling.nonzero)] or [1]
        return lambda shape, rng: np.array(kept, dtype)[rng.integers(0, len(kept), shape)]

    constants = [constant for constant in limits.constants if abs(constant) < 2**53]
    near = [round(constant) + step for constant in constants for step in (-1, 0, 1)]
    makers = {
        "random": drawn(0, 9),
        "mixed": chosen(*range(-4, 5), 100, -100, *near),
        "wide": drawn(-100, 100),
        "negative": drawn(-9, -1) if info.min else drawn(0, 9),
        "zeros": chosen(0),
        "ones": chosen(1),
    }
    if near:
        makers |= {"around constants": chosen(*near), "constants": chosen(*map(round, constants))}
    if limits.tables:
        makers["from tables"] = chosen(*map(round, limits.tables))
    keys = [key for key in limits.keys if lowest <= key <= highest and key == round(key)]
    for at, part in _chunks(keys):
        makers[f"keys, {at}"] = in_order(part.astype(dtype))
    vectors = () if filling.nonzero else limits.integer_vectors
    for at, vector in enumerate(each for each in vectors if lowest <= min(each) and max(each) <= highest):
        makers[f"as held, {at}"] = in_order(np.array(vector, dtype))
    return makers | {
        "limits": chosen(lowest, highest, 0, 1, lowest + 1, highest - 1),
        "whole range": drawn(lowest, highest),
        "part of the range": drawn(lowest // _SUMMED, highest // _SUMMED),  # so that sums are in range
    }
