"""Makes inputs that fit what a model declares: element types, shapes, one size for each symbol."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy as np
from onnx import ModelProto, TensorProto, TypeProto, helper

from reducelower.model.schemas import element_type_name
from reducelower.model.value_info import size_of
from reducelower.numerics.measure import Array
from reducelower.verification.running.memory import check_elements, most_elements

__all__ = [
    "STRATEGIES",
    "Dims",
    "InputSpec",
    "Values",
    "bindings",
    "check_making",
    "free_sizes",
    "input_specs",
    "make_feeds",
    "may_have",
    "random_array",
    "shape_at",
    "tensor_dims",
    "weight_sizes",
]

Dims = tuple[int | str | None, ...]
"""The size of each axis: a number, a symbol, or None if unknown."""

Values = Literal["random", "small", "zeros", "ones"]
STRATEGIES: tuple[Values, ...] = ("random", "small", "zeros", "ones")
"""Values to try in this order, since a model may reject some: indices out of range, divisions by zero, shapes."""

_WORDS = ("a", "reduce", "lower", "", "ünïcode", "42", "-1.5", "two words")
_COMPLEX = (TensorProto.COMPLEX64, TensorProto.COMPLEX128)
_HIGHEST = {"int2": 1, "uint2": 3, "int4": 7}  # random integer of these types; 9 for all others
# Sizes of batches and of all other symbols. None gives each symbol its own size; (1, 1) has the smallest sizes; (2, 2)
# suits models that add or compare tensors of differently named dimensions; 60 is divisible by what reshapes mostly ask
# for; the rest suit convolutions and poolings on unnamed sizes.
_LADDER: tuple[tuple[int, int] | None, ...] = (None, (1, 1), (2, 2), (2, 16), (60, 60), (1, 64), (1, 224), (1, 1024))
_DISTINCT = (3, 2, 5, 4, 7, 6, 9, 8)
_BESIDE_WEIGHTS = 64  # the other sizes, when one size is that of a weight
_FEW = 2  # with more free sizes than that, batches are 1
_MOST = 20_000_000
"""Elements of one input with free sizes, or 10 times the elements at the smallest sizes if that is more."""


@dataclass(frozen=True)
class InputSpec:
    """What a graph input declares; dims is None if the rank is unknown."""

    name: str
    element_type: int
    dims: Dims | None


def tensor_dims(value_type: TypeProto.Tensor) -> Dims | None:
    """The declared sizes; None if no shape is declared.

    A negative size means unknown: exporters write -1, and onnxruntime reads it so.
    """
    if not value_type.HasField("shape"):
        return None
    return tuple(dim.dim_param or size_of(dim) for dim in value_type.shape.dim)


def may_have(dims: Dims | None, shape: tuple[int, ...]) -> bool:
    """Whether a value may have this shape, as far as its shape is known."""
    return dims is None or (
        len(dims) == len(shape)
        and all(dim == size for dim, size in zip(dims, shape, strict=True) if isinstance(dim, int))
    )


def input_specs(model: ModelProto) -> tuple[tuple[InputSpec, ...], dict[str, str]]:
    """The inputs to make values for, and the reason for each that is left out.

    Inputs with an initializer keep that default and are in neither.
    """
    defaults = {tensor.name for tensor in model.graph.initializer}
    defaults |= {tensor.values.name for tensor in model.graph.sparse_initializer}
    specs: list[InputSpec] = []
    skipped: dict[str, str] = {}
    for value in model.graph.input:
        if value.name in defaults:
            continue
        kind = value.type.WhichOneof("value")
        if kind == "tensor_type" and value.type.tensor_type.elem_type:
            specs.append(InputSpec(value.name, value.type.tensor_type.elem_type, tensor_dims(value.type.tensor_type)))
        else:
            name = (kind or "untyped value").replace("_type", "").replace("_", " ")
            skipped[value.name] = f"no values are made for input {value.name!r} ({name})"
    return tuple(specs), skipped


def _symbols(specs: Sequence[InputSpec]) -> list[str]:
    """Names of the free sizes in order of appearance; unnamed sizes share one name per axis.

    Exporters that drop the names leave sizes that still belong together: the batch is axis 0 everywhere. So one
    unnamed size per axis is most likely to be consistent.
    """
    symbols: dict[str, None] = {}
    for spec in specs:
        for axis, dim in enumerate(_dims(spec)):
            if not isinstance(dim, int):
                symbols.setdefault(_symbol(dim, axis))
    return list(symbols)


def free_sizes(model: ModelProto) -> list[str]:
    """The sizes that a caller may fix, in order of appearance: symbols, and ``axis 0`` and so on for unnamed ones."""
    return _symbols(input_specs(model)[0])


def _dims(spec: InputSpec) -> Dims:
    return (None, None) if spec.dims is None else spec.dims


def _symbol(dim: str | None, axis: int) -> str:
    return dim if dim else f"axis {axis}"


def bindings(specs: Sequence[InputSpec], dims: Mapping[str, int] | None = None) -> Iterator[dict[str, int]]:
    """One set of sizes for the free dimensions after another: distinct, all 1, all equal, then larger."""
    fixed = dict(dims or {})
    free = [symbol for symbol in _symbols(specs) if symbol not in fixed]
    batches = _batches(specs)
    if not free:
        yield fixed
        return
    smallest = fixed | dict.fromkeys(free, 1)
    most = min(max(_MOST, 10 * _elements(specs, smallest)), most_elements())
    for rung in _LADDER:
        if rung is None:
            sizes = dict(smallest)
            for at, symbol in enumerate(free):
                sizes[symbol] = _DISTINCT[at % len(_DISTINCT)]
                if _elements(specs, sizes) > most:
                    sizes[symbol] = 1
            yield sizes
        else:
            sizes = fixed | {symbol: rung[0] if symbol in batches else rung[1] for symbol in free}
            if _elements(specs, sizes) <= most:
                yield sizes


def weight_sizes(specs: Sequence[InputSpec], dims: Mapping[str, int], held: Iterable[int]) -> Iterator[dict[str, int]]:
    """Sizes for the free dimensions of data that has to fit weights: one dimension at a time has a held size."""
    free = [symbol for symbol in _symbols(specs) if symbol not in dims]
    others = dict(dims) | dict.fromkeys(free, _BESIDE_WEIGHTS)
    if len(free) > _FEW:
        others |= {symbol: 1 for symbol in free if symbol in _batches(specs)}
    for size in held:
        for symbol in free:
            if _elements(specs, {**others, symbol: size}) <= most_elements():
                yield {**others, symbol: size}


def _batches(specs: Sequence[InputSpec]) -> set[str]:
    return {_symbol(dim, 0) for spec in specs for dim in _dims(spec)[:1] if not isinstance(dim, int)}


def _elements(specs: Sequence[InputSpec], sizes: Mapping[str, int]) -> int:
    """The number of elements of the largest input."""
    return max(prod(shape_at(_dims(spec), sizes)) for spec in specs)


def shape_at(dims: Dims, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of an input at these sizes of its symbols."""
    return tuple(dim if isinstance(dim, int) else sizes[_symbol(dim, axis)] for axis, dim in enumerate(dims))


def check_making(specs: Sequence[InputSpec], dims: Mapping[str, int]) -> None:
    """Raise a TooLargeError if an input is too large to be made even at its smallest sizes."""
    sizes = dict.fromkeys(_symbols(specs), 1) | dict(dims)
    for spec in specs:
        check_elements(prod(shape_at(_dims(spec), sizes)))


def make_feeds(
    specs: Sequence[InputSpec], sizes: Mapping[str, int], values: Values, rng: np.random.Generator
) -> dict[str, Array]:
    """One array per input."""
    return {spec.name: random_array(spec.element_type, shape_at(_dims(spec), sizes), values, rng) for spec in specs}


def random_array(element_type: int, shape: tuple[int, ...], values: Values, rng: np.random.Generator) -> Array:
    """Values of an element type.

    ``random`` is normally distributed for floats and 0..9 for integers (they are often indices or sizes); ``small``
    is the same for floats and 0..1 for integers.
    """
    if element_type == TensorProto.STRING:
        words = np.array(_WORDS, dtype=object)
        return words[rng.integers(0, len(words), shape)] if values == "random" else np.full(shape, "1", dtype=object)
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(element_type))
    if values in ("zeros", "ones"):
        return np.full(shape, float(values == "ones")).astype(dtype)
    name = element_type_name(element_type)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if "int" in name:
        highest = 1 if values == "small" else _HIGHEST.get(name, 9)
        return rng.integers(0, highest + 1, shape).astype(dtype)
    drawn: Any = rng.standard_normal(shape)
    if element_type in _COMPLEX:
        drawn = drawn + 1j * rng.standard_normal(shape)
    if name == "float8e8m0":
        drawn = np.abs(drawn)  # this type has only powers of two, without a sign
    return np.asarray(drawn).astype(dtype)
