"""How one input of a region is filled: ordinary and edge values of its type, and either side of every constant."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from reducelower.numerics.measure import Array, is_float, lowest_and_highest, smallest_and_eps
from reducelower.verification.feeding.limits import Limits
from reducelower.verification.inputs.made import STRATEGIES, InputSpec, Values, random_array

__all__ = ["FAR_DOWN", "FAR_UP", "WIDE", "Case", "Filling", "sprinkled"]

Maker = Callable[[tuple[int, ...], np.random.Generator], Array]

WIDE = 50.0
"""Beyond what activations saturate at."""

FAR_UP, FAR_DOWN = "far above one", "far below one"
"""Values whose products with each other are ordinary, and whose squares are not."""

_ROOM = 48  # elements, which the inputs of a region have in all
_EPSILON = 1e-3  # below, a constant is taken for one
_SUMMED = 64  # integers whose sum is to be in range
_POWER = 8  # of which powers of integers are to be in range, beside those of a digit
_LEAST_HIGHEST = 9
_REPEATED = 16_381  # elements, a prime number, after which those of a large tensor come again


@dataclass(frozen=True)
class Case:
    """One set of inputs, and what it tries in words.

    It is special where NaN or infinities are fed.
    """

    label: str
    feeds: dict[str, Array]
    is_special: bool = False


@dataclass(frozen=True)
class Filling:
    """One input, and what limits say of the region, which decides the values that it is fed."""

    spec: InputSpec
    limits: Limits

    @property
    def nonzero(self) -> bool:
        """Whether this input is never zero."""
        return self.spec.name in self.limits.divisors

    @property
    def kinds(self) -> Sequence[str]:
        """What is tried, in words; ``random`` first."""
        return tuple(self._ways)

    def values(self, kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        """A tensor of a kind, or a random one where there is no such kind."""
        make = self._ways.get(kind, self._ways["random"])
        if prod(shape) > _REPEATED:
            return np.resize(make((_REPEATED,), rng), shape)
        return np.asarray(make(shape, rng))  # numpy gives numbers of rank 0

    @cached_property
    def _ways(self) -> dict[str, Maker]:
        return _ways(self)


def _plain(element_type: int, values: Values) -> Maker:
    return lambda shape, rng: random_array(element_type, shape, values, rng)


def sprinkled(*specials: float) -> Maker:
    """Ordinary doubles with special values at a fifth of the places, and each of them once where there is room."""

    def draw(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        count = int(np.prod(shape))
        values = np.where(rng.random(count) < 0.2, rng.choice(np.array(specials), count), rng.standard_normal(count))
        places = rng.permutation(count)[: len(specials)]
        values[places] = rng.permutation(specials)[: len(places)]
        return values.reshape(shape)

    return draw


def _ways(filling: Filling) -> dict[str, Maker]:
    """Ways to fill a tensor: of strings, of truths, as floats (of `is_float`), as integers of eight bits and more."""
    if filling.spec.element_type == TensorProto.STRING:
        made: dict[str, Maker] = {"random": lambda shape, rng: random_array(TensorProto.STRING, shape, "random", rng)}
        pool = np.array([*filling.limits.texts, *map(str.swapcase, filling.limits.texts)], object)
        if filling.limits.texts:
            made["strings that are held"] = lambda shape, rng: rng.choice(pool, shape)
        return made | {"strings of several": _joined(np.array([*pool, "", " ", "a", "Bc"], object))}
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(filling.spec.element_type))
    if dtype == np.bool_:
        return {
            "random": lambda shape, rng: rng.integers(0, 2, shape).astype(np.bool_),
            "false": lambda shape, rng: np.zeros(shape, np.bool_),
            "true": lambda shape, rng: np.ones(shape, np.bool_),
        }
    if is_float(np.zeros(0, dtype)):
        return _floats(dtype, filling)
    if dtype.kind in "iu":
        return _integers(dtype, filling)
    return {values: _plain(filling.spec.element_type, values) for values in STRATEGIES}


def _joined(pool: Array) -> Maker:
    """Strings of up to thirty others, next to one another."""

    def draw(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        made = ["".join(rng.choice(pool, rng.integers(1, 31))) for _ in range(prod(shape))]
        return np.array(made, object).reshape(shape)

    return draw


def _floats(dtype: np.dtype[Any], filling: Filling) -> dict[str, Maker]:
    subnormal, eps, largest = smallest_and_eps(dtype)
    tiny = subnormal / eps

    def made(draw: Callable[[tuple[int, ...], np.random.Generator], Any]) -> Maker:
        def make(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
            with np.errstate(all="ignore"):
                values = np.asarray(draw(shape, rng)).astype(dtype)
            return np.where(values == 0, 1, values).astype(dtype) if filling.nonzero else values

        return make

    def mixed(*pool: float) -> Maker:
        def draw(shape: tuple[int, ...], rng: np.random.Generator) -> Any:
            ordinary = rng.standard_normal(shape)
            return np.where(rng.random(shape) < 0.4, rng.choice(np.array(pool), shape), ordinary)

        return made(draw)

    near = _near(filling.limits.constants, dtype)
    pool = [0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 1.0, -1.0, 6.5, -11.0, 37.0, -37.0, *near]
    found: dict[str, Maker] = {
        "random": made(lambda shape, rng: rng.standard_normal(shape)),
        "mixed": mixed(*pool),
        "wide": made(lambda shape, rng: rng.uniform(-WIDE, WIDE, shape)),
        "positive": made(lambda shape, rng: rng.uniform(0.1, 1.0, shape)),
        "negative": made(lambda shape, rng: -rng.uniform(0.1, 9.0, shape)),
        "halves": made(lambda shape, rng: rng.integers(-9, 10, shape) / 2),
        "zeros": made(lambda shape, rng: np.zeros(shape)),
        "ones": made(lambda shape, rng: np.ones(shape)),
    }
    if filling.limits.has_steps:
        found["off steps"] = made(_beside(_steps(filling.limits.constants)))
        found["on steps"] = made(lambda shape, rng: rng.choice(np.array(_steps(filling.limits.constants)), shape))
    if filling.limits.tables:
        found["from tables"] = made(_beside(filling.limits.tables))
        found |= {f"above tables, {at}": made(_in_order(part)) for at, part in _parts(filling.limits.tables, 1 + 1e-5)}
        found |= {f"below tables, {at}": made(_in_order(part)) for at, part in _parts(filling.limits.tables, 1 - 1e-5)}
    found |= {f"keys, {at}": made(_in_order(part)) for at, part in _parts(filling.limits.keys)}
    halfway = [number for number in _between_all(filling.limits.constants) if abs(number) < largest / 4]
    if filling.limits.has_steps and halfway:
        # None of them lies on a step, where rounding decides.
        found["between constants"] = made(lambda shape, rng: rng.choice(np.array(halfway), shape))
    if near:
        found["around constants"] = made(lambda shape, rng: rng.choice(np.array(near), shape))
    for constant in filling.limits.constants[:4]:
        step = abs(constant) / 2 + 1
        if abs(constant) + step < largest:
            found[f"at {constant:g}"] = made(_scaled(constant, least=1.0))
            found[f"above {constant:g}"] = made(_scaled(constant + step))
            found[f"below {constant:g}"] = made(_scaled(constant - step))
        if filling.limits.has_steps and not float(constant).is_integer():
            found[f"ties of {constant:g}"] = made(_ties(constant))
    for constant in filling.limits.constants:
        if 0 < constant < _EPSILON:
            # An epsilon is added to a mean of squares.
            found[f"roots of {constant:g}"] = made(_normal(constant**0.5))
    for element_type in sorted(filling.limits.cast_to):
        integer = np.dtype(helper.tensor_dtype_to_np_dtype(element_type))
        # float16 has infinities for most of them, which are a kind of their own.
        bounds = np.clip(np.array(lowest_and_highest(integer), np.float64), -largest, largest)
        found[f"over {integer.name}"] = made(_between(*bounds))
    if not filling.limits.rounds_to_integers:
        decades = float(np.log10(largest)) * 0.45
        found |= {
            "small": made(lambda shape, rng: rng.choice([tiny, -tiny, 1e-3, subnormal * 3, tiny**0.5], shape)),
            "mixed magnitudes": made(
                lambda shape, rng: 10.0 ** rng.uniform(-decades, decades, shape) * rng.choice([-1.0, 1.0], shape)
            ),
            "large": made(lambda shape, rng: rng.standard_normal(shape) * min(1e3, largest**0.5 / 8)),
            "huge": made(lambda shape, rng: rng.uniform(-0.75, 0.75, shape) * largest),
            # The largest x with a finite exp(x) is log(largest); sums of exponentials overflow around it.
            "around the edge of exp": made(lambda shape, rng: rng.standard_normal(shape) + np.log(largest)),
            "largest": made(lambda shape, rng: rng.choice([largest, -largest, 0.95 * largest, 0.0], shape)),
            FAR_UP: made(lambda shape, rng: rng.uniform(0.5, 1.0, shape) * largest**0.65),
            FAR_DOWN: made(lambda shape, rng: rng.uniform(0.5, 1.0, shape) * largest**-0.65),
        }
        if not filling.limits.open_to_special:
            found |= {"infinity": made(sprinkled(np.inf, -np.inf)), "NaN": made(sprinkled(np.nan))}
            found["only NaN"] = made(lambda shape, rng: np.full(shape, np.nan))  # a maximum may lose one among others
    return found


def _parts(values: Sequence[float], factor: float = 1.0) -> Iterator[tuple[int, Array]]:
    """So many values at a time as an input has room for, each times a factor."""
    for start in range(0, len(values), _ROOM):
        yield start, np.array(values[start : start + _ROOM]) * factor


def _in_order(values: Array) -> Maker:
    """The values in their order, over and over."""
    return lambda shape, rng: np.resize(values, shape)


def _between(least: float, most: float) -> Callable[[tuple[int, ...], np.random.Generator], Any]:
    return lambda shape, rng: rng.uniform(least, most, shape)


def _normal(deviation: float) -> Callable[[tuple[int, ...], np.random.Generator], Any]:
    return lambda shape, rng: rng.standard_normal(shape) * deviation


def _scaled(end: float, least: float = 0.9) -> Callable[[tuple[int, ...], np.random.Generator], Any]:
    """Values up to an end in every element, so that sums and means are on one side of a constant too."""
    return lambda shape, rng: rng.uniform(least, 1.0, shape) * end


def _ties(step: float) -> Callable[[tuple[int, ...], np.random.Generator], Any]:
    """A half of a step and a few times that, whose quotients by the step are exact, so that rounding breaks no ties."""
    pool = step * np.array([0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0])
    return lambda shape, rng: rng.choice(pool, shape, p=[0.3, 0.3, *[0.4 / 6] * 6])


def _steps(constants: Sequence[float]) -> list[float]:
    """Steps and halves of steps, by one and by the constants."""
    steps = [1.0, *(abs(constant) for constant in constants if constant and abs(constant) < WIDE)]
    return [step * count / 2 for step in steps for count in range(-9, 10)]


def _beside(values: Sequence[float]) -> Callable[[tuple[int, ...], np.random.Generator], Any]:
    """Values off others by a tenth to a millionth of their own size."""

    def draw(shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        distance = 10.0 ** rng.uniform(-6, -1, shape) * rng.choice([-1.0, 1.0], shape)
        return rng.choice(np.array(values), shape) * (1 + distance)

    return draw


def _near(constants: Sequence[float], dtype: np.dtype[Any]) -> list[float]:
    """Every constant, and values on either side of it."""
    found: list[float] = []
    _, eps, largest = smallest_and_eps(dtype)
    for constant in constants:
        if abs(constant) < largest:
            steps = abs(constant) * eps * 2, abs(constant) * 0.05 + 0.01, abs(constant) * 0.5 + 1
            beside = (constant + sign * step for step in steps for sign in (-1, 1))
            found += [constant, -constant, *(value for value in beside if abs(value) < largest)]
    return found


def _between_all(constants: Sequence[float]) -> list[float]:
    """Values halfway between neighbouring constants, and one beyond either end."""
    known = sorted(constants)
    ends = [known[0] - abs(known[0]) / 2 - 1, known[-1] + abs(known[-1]) / 2 + 1] if known else []
    return [*ends, *(low / 2 + high / 2 for low, high in pairwise(known))]


def _whole(values: Sequence[float], lowest: int, highest: int) -> list[float]:
    return [value for value in values if lowest <= value <= highest and value == round(value)]


def _integers(dtype: np.dtype[Any], filling: Filling) -> dict[str, Maker]:
    info = np.iinfo(dtype)
    # The lowest integer has no negative, and dividing it by -1 ends some processes.
    lowest, highest = (info.min + 1 if info.min and filling.limits.divisors else info.min), info.max
    if filling.limits.open_to_overflow:
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

    limits = chosen(lowest, highest, 0, 1, lowest + 1, highest - 1)
    held = [constant for constant in filling.limits.constants if abs(constant) < 2**53]
    near = [round(constant) + step for constant in held for step in (-1, 0, 1)]
    wholes = () if filling.nonzero else filling.limits.wholes
    fitting = [whole for whole in wholes if all(lowest <= number <= highest for number in whole)]
    found = {
        "random": drawn(0, 9),
        "mixed": chosen(*range(-4, 5), 100, -100, *near),
        "wide": drawn(-100, 100),
        "negative": drawn(-9, -1) if info.min else drawn(0, 9),
        "zeros": chosen(0),
        "ones": chosen(1),
    }
    if near:
        found |= {"around constants": chosen(*near), "constants": chosen(*map(round, held))}
    if filling.limits.tables:
        found["from tables"] = chosen(*map(round, filling.limits.tables))
    for at, part in _parts(_whole(filling.limits.keys, lowest, highest)):
        found[f"keys, {at}"] = _in_order(part.astype(dtype))
    for at, whole in enumerate(fitting):
        found[f"as held, {at}"] = _in_order(np.array(whole, dtype))
    few = drawn(lowest // _SUMMED, highest // _SUMMED)  # of which sums are in range
    return found | {"limits": limits, "whole range": drawn(lowest, highest), "part of the range": few}
