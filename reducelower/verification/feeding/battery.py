"""The inputs a site is put through: shapes with sizes 0 and 1, magnitudes, extremes and special values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from reducelower.numerics.measure import Array, is_float, smallest_and_eps
from reducelower.numerics.reductions import Reduction
from reducelower.verification.inputs.made import STRATEGIES, InputSpec, Values, bindings, random_array
from reducelower.verification.regions.places import Dims

__all__ = ["Case", "Maker", "by_type", "numbers", "reduction_cases", "sprinkled"]

_MAXIMUM = 2_000_000  # elements of one input
_MANY = 200_000  # elements of one input whose sizes are free

Maker = Callable[[tuple[int, ...], np.random.Generator], Array]


@dataclass(frozen=True)
class Case:
    """One set of inputs, and what it tries in words.

    It is special where NaN or infinities are fed, and far where floats are that no integer stands for.
    """

    label: str
    feeds: dict[str, Array]
    is_special: bool = False
    is_far: bool = False


def numbers(element_type: int, count: int, op_type: str) -> dict[str, Maker]:
    """Ways to fill a tensor of an element type, by what they try.

    So many values are reduced into one: integers stay in the range in which that many do not overflow, since overflow
    of integers is not defined.
    """
    if element_type == TensorProto.STRING:
        return {"words": _plain(element_type, "random")}
    return by_type(element_type, _floats, lambda dtype: _integers(dtype, count, op_type))


def by_type(
    element_type: int,
    floats: Callable[[np.dtype[Any]], dict[str, Maker]],
    integers: Callable[[np.dtype[Any]], dict[str, Maker]],
) -> dict[str, Maker]:
    """Ways to fill a tensor: as floats (of `is_float`), as integers of eight bits and more, or plain ones."""
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(element_type))
    if dtype == np.bool_:
        return {
            "random": lambda shape, rng: rng.integers(0, 2, shape).astype(np.bool_),
            "false": lambda shape, rng: np.zeros(shape, np.bool_),
            "true": lambda shape, rng: np.ones(shape, np.bool_),
        }
    if is_float(np.zeros(0, dtype)):
        return floats(dtype)
    if dtype.kind in "iu":
        return integers(dtype)
    return {values: _plain(element_type, values) for values in STRATEGIES}


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


def _floats(dtype: np.dtype[Any]) -> dict[str, Maker]:
    subnormal, eps, largest = smallest_and_eps(dtype)
    root = largest**0.5
    tiny = subnormal / eps
    decades = float(np.log10(largest)) * 0.45
    # The largest x with a finite exp(x) is log(largest); sums of exponentials overflow around it.
    edge = float(np.log(largest))

    def normal(scale: float, shift: float = 0.0) -> Maker:
        return lambda shape, rng: (rng.standard_normal(shape) * scale + shift).astype(dtype)

    def positive(scale: float) -> Maker:
        return lambda shape, rng: (rng.uniform(0.1, 1.0, shape) * scale).astype(dtype)

    def one(value: float) -> Maker:
        # Nothing overflows here but what a replacement makes of it on the way.
        return lambda shape, rng: (
            np.where(np.arange(np.prod(shape, dtype=int)) == 0, value, 0).reshape(shape).astype(dtype)
        )

    def signs(scale: float) -> Maker:
        return lambda shape, rng: (rng.choice([-1.0, 1.0], shape) * scale).astype(dtype)

    def full(value: float) -> Maker:
        return lambda shape, rng: np.full(shape, value, dtype)

    def with_special(*specials: float) -> Maker:
        draw = sprinkled(*specials)
        return lambda shape, rng: draw(shape, rng).astype(dtype)

    return {
        "random": normal(1.0),
        "positive": positive(1.0),
        "whole numbers": lambda shape, rng: rng.integers(-3, 4, shape).astype(dtype),
        "small": positive(1e-3),
        "large": normal(min(1e3, root / 8)),
        "mixed magnitudes": lambda shape, rng: (
            10.0 ** rng.uniform(-decades, decades, shape) * rng.choice([-1.0, 1.0], shape)
        ).astype(dtype),
        "around the square root of the largest": positive(4 * root),
        "around the square root of the smallest": positive(tiny**0.5),
        "around the edge of exp": normal(1.0, edge),
        "far above the edge of exp": normal(1.0, min(10 * edge, largest / 8)),
        "far below zero": normal(1.0, -min(10 * edge, largest / 8)),
        "zeros": full(0.0),
        "ones": full(1.0),
        "negative": lambda shape, rng: (-rng.uniform(0.1, 1.0, shape)).astype(dtype),
        "largest": full(largest),
        "half the largest": positive(largest),
        "one large value": one(0.75 * largest),
        "largest, mixed signs": signs(largest),
        "smallest normal": full(tiny),
        "subnormal": signs(subnormal * 3),
        "positive subnormal": full(subnormal),
        "infinity": with_special(np.inf),
        "negative infinity": with_special(-np.inf),
        "both infinities": with_special(np.inf, -np.inf),
        "infinity and zero": with_special(np.inf, 0.0),
        "only negative infinity": full(-np.inf),
        "NaN": with_special(np.nan),
        "only NaN": full(np.nan),
    }


def _integers(dtype: np.dtype[Any], count: int, op_type: str) -> dict[str, Maker]:
    low, high = _range(dtype, max(count, 1), op_type)

    def full(value: int) -> Maker:
        return lambda shape, rng: np.full(shape, value).astype(dtype)

    def between(least: int, most: int) -> Maker:
        # uint64 reaches past what numpy draws without a type.
        return lambda shape, rng: rng.integers(least, most, shape, dtype=dtype, endpoint=True)

    return {
        "random": between(max(low, -9), min(high, 9)),
        "whole range": between(low, high),
        "ones": full(1),
        "largest": full(high),
        "smallest": full(low),
        "upper end": between(max(high - 7, low), high),
        **({"zeros": full(0)} if low <= 0 else {}),
        **({"negative": between(low, -1)} if low < 0 else {}),
    }


def _range(dtype: np.dtype[Any], count: int, op_type: str) -> tuple[int, int]:
    """The largest range in which a reduction of `count` integers does not overflow and its result is defined."""
    info = np.iinfo(dtype)
    limits: dict[str, Callable[[], int]] = {
        "ReduceMax": lambda: info.max,
        "ReduceMin": lambda: info.max,
        "ReduceSum": lambda: info.max // count,
        "ReduceMean": lambda: info.max // count,
        "ReduceL1": lambda: info.max // count,
        "ReduceLogSum": lambda: info.max // count,
        "ReduceL2": lambda: int((info.max // count) ** 0.5),
        "ReduceSumSquare": lambda: int((info.max // count) ** 0.5),
        "ReduceProd": lambda: int(info.max ** (1 / count)),
        "ReduceLogSumExp": lambda: 20,
    }
    high = max(min(limits.get(op_type, lambda: min(info.max, 9))(), info.max), 1)
    if op_type in ("ReduceMax", "ReduceMin"):
        return info.min, info.max
    if op_type == "ReduceLogSum":
        return 1, high  # the logarithm of zero has no integer
    return (0 if info.min == 0 or op_type not in limits else -high), high


def _few(sizes: Sequence[int], reduced: Collection[int]) -> tuple[int, ...]:
    """Sizes, some of them 1, those that are reduced last, so that there are not many elements at any rank."""
    kept, count = list(sizes), 1
    for at in sorted(range(len(kept)), key=lambda at: at not in reduced):
        kept[at] = kept[at] if count * kept[at] <= _MANY else 1
        count *= kept[at]
    return tuple(kept)


def _shapes(rank: int, axes: tuple[int, ...], static: Dims | None) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Shapes of one rank, the one for all kinds of values first."""
    if static is not None:
        for sizes in bindings((InputSpec("", TensorProto.FLOAT, static),)):
            shape = tuple(dim if isinstance(dim, int) else sizes[dim or f"axis {at}"] for at, dim in enumerate(static))
            if np.prod(shape, dtype=np.int64) <= _MAXIMUM:
                yield "the declared sizes", shape
        return
    base = (3, 4, 5, 2, 3, 2)
    reduced = {axis % rank for axis in axes} if rank else set()
    main = _few([base[at % 6] for at in range(rank)], reduced)
    yield "main", main
    if not rank:
        return
    yield "size 1", (1,) * rank
    yield "other sizes", _few([base[(at + 2) % 6] + 4 for at in range(rank)], reduced)
    if reduced:
        yield "size 1 along reduced axes", tuple(1 if at in reduced else size for at, size in enumerate(main))
        yield "size 0 along reduced axes", tuple(0 if at in reduced else size for at, size in enumerate(main))
        first = min(reduced)
        yield "many values", _few([67 if at == first else min(size, 3) for at, size in enumerate(main)], reduced)
    kept = [at for at in range(rank) if at not in reduced]
    if kept:
        yield "size 0 along kept axes", tuple(0 if at == kept[0] else size for at, size in enumerate(main))


def reduction_cases(
    data: InputSpec, reduction: Reduction, rank: int, seed: int, *, static: bool = False
) -> Iterator[Case]:
    """Inputs for a Reduce operator at one rank, which its axes must fit; where static, of the declared sizes only."""
    axes = reduction.axes_for(rank)
    for position, (place, shape) in enumerate(_shapes(rank, axes, data.dims if static else None)):
        count = int(np.prod([shape[axis] for axis in axes], dtype=np.int64))
        makers = numbers(data.element_type, count, reduction.op_type)
        chosen = (
            list(makers)
            if not position
            else [name for name in ("random", "positive", "largest", "words") if name in makers]
        )
        for at, name in enumerate(chosen):
            rng = np.random.default_rng([seed, rank, position, at])
            yield Case(f"{name} values, {place} {list(shape)}", {data.name: makers[name](shape, rng)})
