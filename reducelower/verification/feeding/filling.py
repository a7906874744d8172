"""Fills one input of a region: ordinary and edge values of its type, and values on both sides of every constant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from reducelower.numerics.measure import Array, holds_special, is_float, lowest_and_highest, smallest_and_eps, widened
from reducelower.verification.feeding.limits import Limits
from reducelower.verification.inputs.declared import InputSpec

__all__ = ["FAR_DOWN", "FAR_UP", "Case", "Filling", "kind_at", "sprinkled"]

_TEXTS = 24  # of those that are held, each fed by itself
_WIDE = 50.0
"""Activations are saturated there."""

FAR_UP, FAR_DOWN = "far above one", "far below one"
"""Values whose squares over- or underflow; a product of one of each is ordinary."""

_WORDS = ("a", "reduce", "lower", "", "ünïcode", "42", "-1.5", "two words")
_EDGES = (0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 1.0, -1.0, 6.5, -11.0, 37.0, -37.0)
_TIES = np.array([0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0])  # of a step; to divide by it is exact
_CHUNK = 48  # numbers fed at a time: an input of a region mostly has room for so many
_FIRST = 4  # constants, on each side of which a whole input lies
_SUMMED = 64  # so many integers have a sum in range
_POWER = 8  # this power of the integers fed is in range, where powers are computed
_LEAST_HIGHEST = 9  # single digits are fed anyway
_REPEATED = 16_381  # elements, a prime number, after which the values of a large tensor repeat

_Maker = Callable[[tuple[int, ...], np.random.Generator], Any]


@dataclass(frozen=True)
class Case:
    """One set of inputs, with a label that says what it tries."""

    label: str
    feeds: dict[str, Array]

    @cached_property
    def is_special(self) -> bool:
        """Whether it has NaN or infinities."""
        return holds_special(self.feeds.values())

    @cached_property
    def range(self) -> tuple[float, float]:
        """The least magnitude above zero and the largest finite one of its floats; zeros if it has none."""
        floats = [
            widened(value).ravel() for value in self.feeds.values() if isinstance(value, np.ndarray) and is_float(value)
        ]
        sizes = np.abs(np.concatenate([*floats, np.zeros(0)]))
        sizes = sizes[(sizes > 0) & np.isfinite(sizes)]
        return (float(sizes.min()), float(sizes.max())) if sizes.size else (0.0, 0.0)


@dataclass(frozen=True)
class Filling:
    """Makes values for one input within the limits of its region."""

    spec: InputSpec
    limits: Limits

    @property
    def kinds(self) -> Sequence[str]:
        """The kinds of values to try, as words for a label; ``random`` first."""
        return tuple(self._makers)

    def values(
        self,
        kind: str,
        shape: tuple[int, ...],
        rng: np.random.Generator,
        others: Mapping[str, tuple[int, ...]] | None = None,
    ) -> Array:
        """A tensor of this kind; a random one if the input has no such kind.

        Random values of an input that says where or how much fit its role, and the shapes of the `others`.
        """
        dtype = helper.tensor_dtype_to_np_dtype(self.spec.element_type)
        role = self.limits.roles.get(self.spec.name) if self._is_place else None
        if role is not None and (kind == "random" or role.kind == "axes"):  # runtimes take axes that occur twice
            of = {**self.limits.constant_shapes, **(others or {})}.get(role.data)
            fitting = role.values(of, shape, rng, self.limits.constants)
            if fitting is not None:
                return np.asarray(fitting, dtype)  # numpy returns scalars for rank 0
        make = self._makers.get(kind, self._makers["random"])
        with np.errstate(all="ignore"):
            drawn = np.asarray(make((_REPEATED,) if prod(shape) > _REPEATED else shape, rng)).astype(dtype)
        if self.spec.element_type == TensorProto.FLOAT8E8M0:  # it has powers of two alone, without a sign
            drawn = np.nan_to_num(drawn.astype(float), nan=1).astype(dtype)
        if self.spec.name in self.limits.divisors:
            drawn = np.where(drawn == 0, 1, drawn).astype(dtype)
        return np.resize(drawn, shape) if drawn.shape != shape else drawn

    @property
    def _is_place(self) -> bool:
        return self.spec.name in self.limits.where

    @cached_property
    def _makers(self) -> dict[str, _Maker]:
        """A maker for each kind of values that the element type has; plain ones where the values say how much."""
        limits = Limits() if self._is_place else self.limits
        if self.spec.element_type == TensorProto.STRING:
            held = dict.fromkeys([*limits.texts_of_one, *limits.texts, *map(str.swapcase, limits.texts)])
            pool = [*_WORDS, *held]
            several = _any_of([between.join(pool) for between in (" ", "")])
            makers = {"random": _any_of(_WORDS), "strings that are held": _any_of(pool), "several joined": several}
            return makers | {kind_at(text): _any_of([text]) for text in list(held)[:_TEXTS]}
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(self.spec.element_type))
        if dtype == np.bool_:
            return {"random": _any_of([False, True]), "false": _any_of([False]), "true": _any_of([True])}
        if is_float(np.zeros(0, dtype)):
            return _floats(dtype, limits)
        if dtype.kind in "iu":
            return _integers(dtype, limits)
        return {
            "random": lambda shape, rng: rng.standard_normal(shape) + 1j * rng.standard_normal(shape),
            "zeros": _any_of([0.0]),
        }


def kind_at(constant: float | str) -> str:
    """The kind of values that all are a constant."""
    return f"at {constant!r}" if isinstance(constant, str) or constant != int(constant) else f"at {int(constant)}"


def _any_of(values: Sequence[Any] | Array) -> _Maker:
    """Any of these values, everywhere."""
    return lambda shape, rng: rng.choice(np.array(values, object if isinstance(values[0], str) else None), shape)


def sprinkled(values: Sequence[float], share: float = 0.2) -> _Maker:
    """Ordinary doubles, a share of them replaced by some of these values, at least two if the shape has room."""

    def draw(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        drawn = rng.standard_normal(prod(shape))
        places = rng.permutation(drawn.size)[: max(round(share * drawn.size), 2)]
        drawn[places] = np.resize(rng.permutation(values), places.size)
        return drawn.reshape(shape)

    return draw


def _in_order(values: Sequence[Any] | Array) -> _Maker:
    """The values in order, repeated to fill the shape."""
    return lambda shape, rng: np.resize(values, shape)


def _between(least: float, most: float) -> _Maker:
    return lambda shape, rng: least + (most - least) * rng.random(shape)


def _floats(dtype: np.dtype[Any], limits: Limits) -> dict[str, _Maker]:
    subnormal, eps, largest = smallest_and_eps(dtype)
    tiny, near = subnormal / eps, _near(limits.constants, dtype)
    makers: dict[str, _Maker] = {
        "random": lambda shape, rng: rng.standard_normal(shape),
        "mixed": sprinkled([*_EDGES, *near], 0.4),
        "wide": _between(-_WIDE, _WIDE),
        "positive": _between(0.1, 1.0),
        "zeros": _any_of([0.0]),
        "ones": _any_of([1.0]),
        # Means of halves are exact, so that a variance of zero is zero.
        "rows alike": lambda shape, rng: np.zeros(shape) + np.round(2 * rng.standard_normal(_of_rows(shape))) / 2,
        "rows scaled": lambda shape, rng: rng.standard_normal(shape) * 10.0 ** rng.integers(-8, 1, _of_rows(shape)),
    }
    makers |= {f"as held, {at}": _in_order(part) for at, part in _chunks(limits.lists)}
    halfway = [number for number in _between_all(limits.constants) if abs(number) < largest / 4]
    if limits.has_steps and halfway:
        # No value lies on a step, where rounding decides.
        makers["between constants"] = _any_of(halfway)
    if near:
        makers["around constants"] = _any_of(near)
    for constant in limits.constants[:_FIRST]:
        step = abs(constant) / 2 + 1
        if abs(constant) + step < largest:
            makers[kind_at(constant)] = _any_of([constant])
            # Just within an end, so that means lie on that side of the constant, too.
            ends = (("above", constant + step), ("below", constant - step))
            makers |= {f"{name} {constant:g}": _between(0.9 * end, end) for name, end in ends}
        if limits.has_steps and not float(constant).is_integer():
            makers[f"ties of {constant:g}"] = _any_of([*_TIES[:2], *_TIES] * np.array(constant))
    for element_type in sorted(limits.cast_to):
        integer = np.dtype(helper.tensor_dtype_to_np_dtype(element_type))
        # Most bounds are infinite in float16, and infinities are a kind of their own.
        makers[f"over {integer.name}"] = _between(
            *np.clip(np.array(lowest_and_highest(integer), float), -largest, largest)
        )
    if not limits.rounds_to_integers:
        decades = float(np.log10(largest)) * 0.45
        makers |= {
            "small": _any_of([tiny, -tiny, 1e-3, subnormal * 3, tiny**0.5]),
            "mixed magnitudes": lambda shape, rng: (
                10.0 ** rng.uniform(-decades, decades, shape) * rng.choice([-1.0, 1.0], shape)
            ),
            "large": lambda shape, rng: rng.standard_normal(shape) * min(1e3, largest**0.5 / 8),
            "huge": _between(-0.75 * largest, 0.75 * largest),
            "largest": _any_of([largest, -largest, 0.95 * largest, 0.0]),
            FAR_UP: _between(0.5 * largest**0.65, largest**0.65),
            FAR_DOWN: _between(0.5 * largest**-0.65, largest**-0.65),
        }
        if not limits.open_to_special:
            makers |= {"infinity": sprinkled([np.inf, -np.inf]), "NaN": sprinkled([np.nan])}
            makers["only NaN"] = _any_of([np.nan])  # a maximum may drop a single NaN
    return makers | {kind_at(each): _any_of([each]) for each in limits.constants[_FIRST:] if abs(each) < largest}


def _of_rows(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of one number for each row."""
    return (*shape[:-1], 1) if shape else ()


def _chunks(lists: Iterable[Sequence[float]]) -> Iterator[tuple[int, Array]]:
    """The lists in chunks, numbered."""
    return enumerate(np.array(each[at : at + _CHUNK]) for each in lists for at in range(0, len(each), _CHUNK))


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


def _integers(dtype: np.dtype[Any], limits: Limits) -> dict[str, _Maker]:
    info = np.iinfo(dtype)
    lowest, highest = (info.min + 1 if info.min and limits.divides else info.min), info.max  # it has no negative
    if limits.open_to_overflow:
        highest = max(int(highest ** (1 / _POWER)), _LEAST_HIGHEST)
        lowest = -highest if info.min else 0

    def drawn(least: int, most: int) -> _Maker:
        bounds = max(least, lowest), min(most, highest)
        return lambda shape, rng: rng.integers(*bounds, shape, dtype=dtype, endpoint=True)

    def chosen(*pool: int) -> _Maker:
        return _any_of(np.array([item for item in pool if lowest <= item <= highest] or [1], dtype))

    near = [round(constant) + step for constant in limits.constants if abs(constant) < 2**53 for step in (-1, 0, 1)]
    makers = {
        "random": drawn(0, 9),
        "mixed": chosen(*range(-4, 5), 100, -100, *near),
        "wide": drawn(-100, 100),
        "small": drawn(0, 1),
        "zeros": chosen(0),
        "ones": chosen(1),
    }
    if near:
        makers["around constants"] = chosen(*near)
    makers |= {kind_at(each): chosen(round(each)) for each in limits.constants if each == round(each)}
    whole = [[key for key in each if lowest <= key <= highest and key == round(key)] for each in limits.lists]
    makers |= {f"as held, {at}": _in_order(part) for at, part in _chunks(filter(None, whole))}
    return makers | {
        "limits": chosen(lowest, highest, 0, 1, lowest + 1, highest - 1),
        "part of the range": drawn(lowest // _SUMMED, highest // _SUMMED),  # so that sums are in range
    }
