"""Makes inputs that fit what a model declares: element types, shapes, symbolic dimensions bound consistently."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, TypeProto, helper

from reducelower.model.schemas import element_type_name
from reducelower.model.value_info import size_of
from reducelower.numerics.measure import Array
from reducelower.verification.running.memory import check_elements, most_elements

__all__ = [
    "STRATEGIES",
    "InputSpec",
    "Values",
    "bindings",
    "check_making",
    "fitted",
    "free_sizes",
    "input_specs",
    "make_feeds",
    "may_have",
    "random_array",
    "tensor_dims",
]

Values = Literal["random", "small", "zeros", "ones"]
STRATEGIES: tuple[Values, ...] = ("random", "small", "zeros", "ones")
"""What to try, in this order, on a model that rejects values: indices out of range, divisions by zero, shapes."""

_WORDS = ("a", "reduce", "lower", "", "ünïcode", "42", "-1.5", "two words")
_COMPLEX = (TensorProto.COMPLEX64, TensorProto.COMPLEX128)
# The first binding tells every symbol apart; the second has the smallest sizes; the third satisfies models that add
# or compare tensors of differently named dimensions; 60 is divisible by what reshapes ask for; the rest are for
# convolutions and poolings on unnamed sizes.
_LADDER: tuple[tuple[int, int] | None, ...] = (None, (1, 1), (2, 2), (2, 16), (60, 60), (1, 64), (1, 224), (1, 1024))
_DISTINCT = (3, 2, 5, 4, 7, 6, 9, 8)
_BESIDE_WEIGHTS = 64  # the other sizes, beside one that is that of a weight
_FEW = 2  # free sizes, of which the first may be as large, though it may be a batch
_MOST = 20_000_000
"""Elements of one input of free sizes; 10 times those of the sizes that are declared, where that is more."""


@dataclass(frozen=True)
class InputSpec:
    """What a graph input declares: dims are per axis a size, a symbol or None, and None when the rank is unknown."""

    name: str
    element_type: int
    dims: tuple[int | str | None, ...] | None


def tensor_dims(value_type: TypeProto.Tensor) -> tuple[int | str | None, ...] | None:
    """Declared sizes: numbers, symbols, or None; None as a whole where no shape is declared.

    A size below zero is one that is not known: exporters write -1 for it, and onnxruntime takes it so.
    """
    if not value_type.HasField("shape"):
        return None
    return tuple(dim.dim_param or size_of(dim) for dim in value_type.shape.dim)


def may_have(known: tuple[int | str | None, ...] | None, shape: tuple[int, ...]) -> bool:
    """Whether a value may have a shape, given what is known of its own."""
    return known is None or (
        len(known) == len(shape)
        and all(dim == size for dim, size in zip(known, shape, strict=True) if isinstance(dim, int))
    )


def _initializers(graph: GraphProto) -> set[str]:
    names = {tensor.name for tensor in graph.initializer}
    return names | {tensor.values.name for tensor in graph.sparse_initializer}


def input_specs(model: ModelProto) -> tuple[tuple[InputSpec, ...], dict[str, str]]:
    """The inputs to make values for, and those that are left out with the reason.

    Inputs with an initializer keep that default and are in neither.
    """
    defaults = _initializers(model.graph)
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
    """Names of the free sizes, in order of appearance; unnamed ones are told apart by their axis only.

    Exporters that drop the names leave sizes that still belong together (the batch is axis 0 everywhere), so one
    unnamed size per axis is the binding most likely to be consistent.
    """
    found: dict[str, None] = {}
    for spec in specs:
        for axis, dim in enumerate(_dims(spec)):
            if not isinstance(dim, int):
                found.setdefault(_symbol(dim, axis))
    return list(found)


def free_sizes(model: ModelProto) -> list[str]:
    """The sizes that a caller may fix, in order of appearance: symbols, and ``axis 0`` and so on for unnamed ones."""
    return _symbols(input_specs(model)[0])


def _dims(spec: InputSpec) -> tuple[int | str | None, ...]:
    return (None, None) if spec.dims is None else spec.dims


def _symbol(dim: str | None, axis: int) -> str:
    return dim if dim else f"axis {axis}"


def bindings(specs: Sequence[InputSpec], dims: Mapping[str, int] | None = None) -> Iterator[dict[str, int]]:
    """Sizes for every dimension that is not fixed, several times: distinct, all 1, all equal, then larger."""
    fixed = dict(dims or {})
    free = [symbol for symbol in _symbols(specs) if symbol not in fixed]
    batch = _batches(specs)
    if not free:
        yield fixed
        return
    smallest = fixed | dict.fromkeys(free, 1)
    most = min(max(_MOST, 10 * _elements(specs, smallest)), most_elements())
    for step in _LADDER:
        if step is None:
            sizes = dict(smallest)
            for at, symbol in enumerate(free):
                sizes[symbol] = _DISTINCT[at % len(_DISTINCT)]
                if _elements(specs, sizes) > most:
                    sizes[symbol] = 1
            yield sizes
        else:
            sizes = fixed | {symbol: step[0] if symbol in batch else step[1] for symbol in free}
            if _elements(specs, sizes) <= most:
                yield sizes


def fitted(specs: Sequence[InputSpec], dims: Mapping[str, int], held: Iterable[int]) -> Iterator[dict[str, int]]:
    """Sizes for every dimension that is not fixed, where data may have to fit weights: one of these has their size."""
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
    """How many elements the largest input has."""
    return max(prod(_shape(spec, sizes)) for spec in specs)


def _shape(spec: InputSpec, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(dim if isinstance(dim, int) else sizes[_symbol(dim, axis)] for axis, dim in enumerate(_dims(spec)))


def check_making(specs: Sequence[InputSpec], dims: Mapping[str, int]) -> None:
    """Raise a TooLargeError for an input that has so many elements at least that none are made."""
    sizes = dict.fromkeys(_symbols(specs), 1) | dict(dims)
    for spec in specs:
        check_elements(prod(_shape(spec, sizes)))


def make_feeds(
    specs: Sequence[InputSpec], sizes: Mapping[str, int], values: Values, rng: np.random.Generator
) -> dict[str, Array]:
    """One array per input."""
    feeds = {}
    for spec in specs:
        feeds[spec.name] = random_array(spec.element_type, _shape(spec, sizes), values, rng)
    return feeds


def random_array(element_type: int, shape: tuple[int, ...], values: Values, rng: np.random.Generator) -> Array:
    """Values of an element type.

    ``random`` is normally distributed for floats and 0..9 for integers (they are often indices or sizes), ``small``
    keeps the floats and lowers integers to 0..1, ``zeros`` and ``ones`` are what they say.
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
        highest = 1 if values == "small" else _largest_small(name)
        return rng.integers(0, highest + 1, shape).astype(dtype)
    drawn: Any = rng.standard_normal(shape)
    if element_type in _COMPLEX:
        drawn = drawn + 1j * rng.standard_normal(shape)
    if name == "float8e8m0":
        drawn = np.abs(drawn)  # powers of two only, without a sign
    return np.asarray(drawn).astype(dtype)


def _largest_small(name: str) -> int:
    """At most 9, less where the integers are two or four bits wide."""
    return {"int2": 1, "uint2": 3, "int4": 7}.get(name, 9)
