"""The values a region is fed: ordinary and edge values of its types, and either side of every constant it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from reducelower.numerics.measure import Array, is_float, is_narrow_float, smallest_and_eps
from reducelower.verification.battery import Case, Maker
from reducelower.verification.inputs import STRATEGIES, InputSpec, Values, bindings, random_array
from reducelower.verification.limits import Limits

__all__ = ["Accepts", "fed"]

_LARGE = 20_000  # elements; above, each kind of value costs more than it is likely to show
_MAXIMUM = 4_000_000
_WIDE = 50.0
_MANY = 400  # values along all free dimensions
_TRUTHS = 3  # bool inputs of which every combination is tried

Accepts = Callable[[Mapping[str, Any]], bool]


def fed(specs: Sequence[InputSpec], limits: Limits, seed: int, accepts: Accepts) -> Iterator[Case]:
    """Sets of inputs for a region.

    Args:
        specs: its inputs.
        limits: what may not be fed.
        seed: for the random values.
        accepts: whether the source runs on a set of inputs; asked where sizes or indices have to fit.
    """
    if not specs:
        yield Case("no inputs", {})
        return
    found, first = False, 0
    for position, sizes in enumerate(_sizes(specs, limits)):
        shapes = {spec.name: _shape(spec, sizes) for spec in specs}
        count = _count(specs, sizes)
        if found and count > (_LARGE if count > first else _MAXIMUM):
            continue
        makers = {spec.name: _makers(spec, limits) for spec in specs}
        where = _fitting(specs, shapes, makers, limits, [seed, position], accepts)
        if where is None:
            continue
        kinds = _kinds(makers, small=not position, large=count > _LARGE)
        found, first = True, first or count
        for at, kind in enumerate(kinds):
            rng = np.random.default_rng([seed, position, at])
            feeds = {}
            for spec in specs:
                if spec.name in where:
                    feeds[spec.name] = _where(spec, shapes, limits, where[spec.name], rng)
                else:
                    made = makers[spec.name]
                    feeds[spec.name] = made.get(kind, made["random"])(shapes[spec.name], rng)
            yield Case(f"{kind} values, {[list(shape) for shape in shapes.values()]}", feeds, kind in _SPECIAL)
        if not position:
            yield from _truths(specs, shapes, makers, where, limits, seed)
            yield from _special_alone(specs, shapes, makers, where, limits, seed)


_SPECIAL = frozenset({"infinity", "NaN", "one NaN", "negative infinity"})


def _sizes(specs: Sequence[InputSpec], limits: Limits) -> Iterator[dict[str, int]]:
    """Sizes for free dimensions: distinct ones first, one and zero among them, many where values are cut to steps."""
    for at, sizes in enumerate(bindings(specs)):
        yield sizes
        if at == 1 and sizes and limits.takes_empty:
            yield dict.fromkeys(sizes, 0)
        if at == 3:
            break
    many = dict.fromkeys(sizes, max(2, round(_MANY ** (1 / max(len(sizes), 1)))))
    if sizes and limits.has_steps and _count(specs, many) <= _LARGE:
        yield many


def _count(specs: Sequence[InputSpec], sizes: Mapping[str, int]) -> int:
    """Elements of the largest input."""
    return max(int(np.prod(_shape(spec, sizes), dtype=np.int64)) for spec in specs)


def _shape(spec: InputSpec, sizes: Mapping[str, int]) -> tuple[int, ...]:
    dims = (None, None) if spec.dims is None else spec.dims
    return tuple(dim if isinstance(dim, int) else sizes[dim or f"axis {at}"] for at, dim in enumerate(dims))


def _kinds(makers: Mapping[str, Mapping[str, Maker]], *, small: bool, large: bool) -> list[str]:
    every = list(dict.fromkeys(kind for made in makers.values() for kind in made))
    if large:
        return [
            kind for kind in ("random", "mixed", "wide", "NaN", "infinity", "limits", "false", "true") if kind in every
        ]
    if not small:
        return [kind for kind in ("random", "mixed", "wide", "negative", "off steps") if kind in every]
    return every


def _fitting(
    specs: Sequence[InputSpec],
    shapes: Mapping[str, tuple[int, ...]],
    makers: Mapping[str, Mapping[str, Maker]],
    limits: Limits,
    seed: Sequence[int],
    accepts: Accepts,
) -> dict[str, Values] | None:
    """How to fill the inputs that are indices and sizes so that the source runs; None where it runs on none."""
    places = [spec for spec in specs if spec.name in limits.where]
    for values in STRATEGIES if places else STRATEGIES[:1]:
        rng = np.random.default_rng(seed)
        feeds = {spec.name: makers[spec.name]["random"](shapes[spec.name], rng) for spec in specs}
        feeds |= {spec.name: _where(spec, shapes, limits, values, rng) for spec in places}
        if accepts(feeds):
            return {spec.name: values for spec in places}
    return None


def _where(
    spec: InputSpec,
    shapes: Mapping[str, tuple[int, ...]],
    limits: Limits,
    values: Values,
    rng: np.random.Generator,
) -> Array:
    """An index over its whole range where that is known, else a small number."""
    data, axis = limits.indexes.get(spec.name, ("", 0))
    if data in shapes and shapes[data] and spec.element_type in (TensorProto.INT32, TensorProto.INT64):
        length = shapes[data][axis]
        dtype = helper.tensor_dtype_to_np_dtype(spec.element_type)
        if length:
            return rng.integers(-length, length, shapes[spec.name]).astype(dtype)
    return random_array(spec.element_type, shapes[spec.name], values, rng)


def _truths(
    specs: Sequence[InputSpec],
    shapes: Mapping[str, tuple[int, ...]],
    makers: Mapping[str, Mapping[str, Maker]],
    where: Mapping[str, Values],
    limits: Limits,
    seed: int,
) -> Iterator[Case]:
    """Every combination of truth values of the bool inputs, with the others ordinary."""
    bools = [spec.name for spec in specs if spec.element_type == TensorProto.BOOL][:_TRUTHS]
    # A mask may hide the few elements that are special, so they are tried under either truth value.
    special = ("NaN", "infinity") if any("NaN" in made for made in makers.values()) else ()
    kinds = ("random", "wide", *special)
    for number in range(2 ** len(bools) if bools else 0):
        for at, kind in enumerate(kinds):
            rng = np.random.default_rng([seed, 1000, number, at])
            feeds = {}
            for spec in specs:
                if spec.name in bools:
                    truth = bool(number >> bools.index(spec.name) & 1)
                    feeds[spec.name] = np.full(shapes[spec.name], truth)
                elif spec.name in where:
                    feeds[spec.name] = _where(spec, shapes, limits, where[spec.name], rng)
                else:
                    made = makers[spec.name]
                    feeds[spec.name] = made.get(kind, made["random"])(shapes[spec.name], rng)
            truths = ", ".join(f"{name} {bool(number >> at & 1)}" for at, name in enumerate(bools))
            yield Case(f"{kind} values, {truths}", feeds, kind in _SPECIAL)


def _special_alone(
    specs: Sequence[InputSpec],
    shapes: Mapping[str, tuple[int, ...]],
    makers: Mapping[str, Mapping[str, Maker]],
    where: Mapping[str, Values],
    limits: Limits,
    seed: int,
) -> Iterator[Case]:
    """NaN in one of several inputs: in all of them, they may hide each other."""
    special = [spec.name for spec in specs if "NaN" in makers[spec.name]]
    for at, name in enumerate(special if len(specs) > 1 else ()):
        rng = np.random.default_rng([seed, 2000, at])
        feeds = {}
        for spec in specs:
            if spec.name in where:
                feeds[spec.name] = _where(spec, shapes, limits, where[spec.name], rng)
            else:
                kind = "NaN" if spec.name == name else "random"
                feeds[spec.name] = makers[spec.name][kind](shapes[spec.name], rng)
        yield Case(f"NaN in {name!r}", feeds, is_special=True)


def _makers(spec: InputSpec, limits: Limits) -> dict[str, Maker]:
    """Ways to fill one input, by what they try; ``random`` first."""
    if spec.element_type == TensorProto.STRING:
        return {"random": lambda shape, rng: random_array(TensorProto.STRING, shape, "random", rng)}
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(spec.element_type))
    if dtype == np.bool_:
        return {
            "random": lambda shape, rng: rng.integers(0, 2, shape).astype(np.bool_),
            "false": lambda shape, rng: np.zeros(shape, np.bool_),
            "true": lambda shape, rng: np.ones(shape, np.bool_),
        }
    probe = np.zeros(0, dtype)
    if is_float(probe):
        return _floats(dtype, limits)
    narrow = is_narrow_float(probe) or (dtype.itemsize == 1 and dtype.name not in ("int8", "uint8"))
    if narrow or dtype.kind not in "iu":
        return {values: _plain(spec.element_type, values) for values in STRATEGIES}
    return _integers(dtype, limits, nonzero=spec.name in limits.divisors)


def _plain(element_type: int, values: Values) -> Maker:
    return lambda shape, rng: random_array(element_type, shape, values, rng)


def _floats(dtype: np.dtype[Any], limits: Limits) -> dict[str, Maker]:
    subnormal, eps, largest = smallest_and_eps(dtype)
    tiny = subnormal / eps

    def made(draw: Callable[[tuple[int, ...], np.random.Generator], Any]) -> Maker:
        def make(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
            with np.errstate(all="ignore"):
                return np.asarray(draw(shape, rng)).astype(dtype)

        return make

    def mixed(*pool: float) -> Maker:
        def draw(shape: tuple[int, ...], rng: np.random.Generator) -> Any:
            ordinary = rng.standard_normal(shape)
            return np.where(rng.random(shape) < 0.4, rng.choice(np.array(pool), shape), ordinary)

        return made(draw)

    def sprinkled(*specials: float) -> Maker:
        def draw(shape: tuple[int, ...], rng: np.random.Generator) -> Any:
            values = rng.standard_normal(shape)
            where = rng.random(shape) < 0.2
            if where.size and not where.any():
                where.flat[0] = True
            return np.where(where, rng.choice(np.array(specials), shape), values)

        return made(draw)

    near = _near(limits.constants, dtype)
    pool = [0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 1.0, -1.0, 6.5, -11.0, 37.0, -37.0, *near]
    found: dict[str, Maker] = {
        "random": made(lambda shape, rng: rng.standard_normal(shape)),
        "mixed": mixed(*pool),
        "wide": made(lambda shape, rng: rng.uniform(-_WIDE, _WIDE, shape)),
        "positive": made(lambda shape, rng: rng.uniform(0.1, 1.0, shape)),
        "negative": made(lambda shape, rng: -rng.uniform(0.1, 9.0, shape)),
        "halves": made(lambda shape, rng: rng.integers(-9, 10, shape) / 2),
        "zeros": made(lambda shape, rng: np.zeros(shape)),
        "ones": made(lambda shape, rng: np.ones(shape)),
    }
    if limits.has_steps:
        found["off steps"] = made(_off_steps(limits.constants))
    if near:
        found["around constants"] = made(lambda shape, rng: rng.choice(np.array(near), shape))
    for constant in limits.constants[:4]:
        step = abs(constant) / 2 + 1
        if abs(constant) + step < largest:
            found[f"at {constant:g}"] = made(_scaled(constant, least=1.0))
            found[f"above {constant:g}"] = made(_scaled(constant + step))
            found[f"below {constant:g}"] = made(_scaled(constant - step))
    if not limits.rounds_to_integers:
        decades = float(np.log10(largest)) * 0.45
        found |= {
            "small": made(lambda shape, rng: rng.choice([tiny, -tiny, 1e-3, subnormal * 3, tiny**0.5], shape)),
            "mixed magnitudes": made(
                lambda shape, rng: 10.0 ** rng.uniform(-decades, decades, shape) * rng.choice([-1.0, 1.0], shape)
            ),
            "large": made(lambda shape, rng: rng.standard_normal(shape) * min(1e3, largest**0.5 / 8)),
            "huge": made(lambda shape, rng: rng.uniform(-0.75, 0.75, shape) * largest),
        }
        if not limits.open_to_special:
            found |= {"infinity": sprinkled(np.inf, -np.inf), "NaN": sprinkled(np.nan)}
    return found


def _scaled(end: float, least: float = 0.9) -> Callable[[tuple[int, ...], np.random.Generator], Any]:
    """Values up to an end in every element, so that sums and means are on one side of a constant too."""
    return lambda shape, rng: rng.uniform(least, 1.0, shape) * end


def _off_steps(constants: Sequence[float]) -> Callable[[tuple[int, ...], np.random.Generator], Any]:
    """Values on either side of halves of steps, at distances of a tenth to a millionth of their own size."""
    steps = np.array([1.0, *(abs(constant) for constant in constants if constant and abs(constant) < _WIDE)])

    def draw(shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        distance = 10.0 ** rng.uniform(-6, -1, shape) * rng.choice([-1.0, 1.0], shape)
        return rng.integers(-9, 10, shape) / 2 * rng.choice(steps, shape) * (1 + distance)

    return draw


def _near(constants: Sequence[float], dtype: np.dtype[Any]) -> list[float]:
    """Every constant, and values on either side of it."""
    found: list[float] = []
    _, eps, largest = smallest_and_eps(dtype)
    for constant in constants:
        if abs(constant) < largest / 4:
            steps = abs(constant) * eps * 2, abs(constant) * 0.05 + 0.01, abs(constant) * 0.5 + 1
            found += [constant, -constant, *(constant + sign * step for step in steps for sign in (-1, 1))]
    return found


def _integers(dtype: np.dtype[Any], limits: Limits, *, nonzero: bool) -> dict[str, Maker]:
    info = np.iinfo(dtype)
    # The lowest integer has no negative, and dividing it by -1 ends some processes.
    lowest, highest = (info.min + 1 if info.min and limits.divisors else info.min), info.max

    def drawn(least: int, most: int) -> Maker:
        def make(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
            values = rng.integers(max(least, lowest), min(most, highest), shape, dtype=dtype, endpoint=True)
            return np.where(values == 0, 1, values).astype(dtype) if nonzero else values

        return make

    def chosen(*pool: int) -> Maker:
        kept = [item for item in pool if lowest <= item <= highest and (item or not nonzero)] or [1]
        return lambda shape, rng: np.array(kept, dtype)[rng.integers(0, len(kept), shape)]

    near = [round(constant) + step for constant in limits.constants for step in (-1, 0, 1) if abs(constant) < 2**53]
    return {
        "random": drawn(0, 9),
        "mixed": chosen(*range(-4, 5), 100, -100, *near),
        "wide": drawn(-100, 100),
        "negative": drawn(-9, -1) if info.min else drawn(0, 9),
        "zeros": chosen(0),
        "ones": chosen(1),
        **({"around constants": chosen(*near)} if near else {}),
        **({f"at {constant:g}": chosen(round(constant)) for constant in limits.constants[:4]} if near else {}),
        **({f"above {constant:g}": chosen(round(constant) + 1) for constant in limits.constants[:4]} if near else {}),
        **({f"below {constant:g}": chosen(round(constant) - 1) for constant in limits.constants[:4]} if near else {}),
        "limits": chosen(lowest, highest, 0, 1, lowest + 1, highest - 1),
        "whole range": drawn(lowest, highest),
    }
