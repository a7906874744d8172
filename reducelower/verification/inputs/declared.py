"""What the inputs of a model declare: element types, shapes, one name for each free size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from onnx import ModelProto

from reducelower.model.graph import graphs
from reducelower.model.value_info import may_be_of_one_shape, set_sizes, stated_type, without_made_up_symbols
from reducelower.text import calculated
from reducelower.verification.running.memory import check_elements

__all__ = [
    "Dims",
    "InputSpec",
    "Named",
    "are_stated",
    "at_sizes",
    "bound",
    "check_making",
    "fixed_sizes",
    "free_sizes",
    "input_specs",
    "listed",
    "may_have",
    "named",
    "names_in",
    "related",
    "shape_at",
]

Dims = tuple[int | str | None, ...]
"""The size of each axis: a number, a symbol, or None if unknown."""

Named = Mapping[str, tuple[int | str, ...]]
"""The sizes of every input by its name: a number, or the name of a free size."""


@dataclass(frozen=True)
class InputSpec:
    """What a graph input declares; dims is None if the rank is unknown."""

    name: str
    element_type: int
    dims: Dims | None


def may_have(dims: Dims | None, shape: tuple[int, ...]) -> bool:
    """Whether a value may have this shape, as far as its shape is known."""
    return dims is None or may_be_of_one_shape(dims, shape)


def are_stated(stated: Iterable[Dims | None], values: Iterable[Any]) -> bool:
    """Whether values may have the sizes that are stated for them; what is no array has none."""
    pairs = zip(stated, values, strict=True)
    return all(may_have(dims, value.shape) for dims, value in pairs if isinstance(value, np.ndarray))


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
        stated = stated_type(value.type)
        if stated.element_type:
            specs.append(InputSpec(value.name, stated.element_type, stated.sizes))
        else:
            name = (value.type.WhichOneof("value") or "untyped value").replace("_type", "").replace("_", " ")
            skipped[value.name] = f"no values are made for input {value.name!r} ({name})"
    return tuple(specs), skipped


def named(specs: Iterable[InputSpec]) -> Named:
    """The sizes of every input; unnamed sizes share one name per axis, and an unknown rank counts as two.

    Exporters that drop the names leave sizes that still belong together: the batch is axis 0 everywhere. So one
    unnamed size per axis is most likely to be consistent.
    """
    sizes = ((spec.name, (None, None) if spec.dims is None else spec.dims) for spec in specs)
    return {
        name: tuple(dim if isinstance(dim, int) else dim or f"axis {axis}" for axis, dim in enumerate(dims))
        for name, dims in sizes
    }


def names_in(dims: Named) -> list[str]:
    """The names of the free sizes, in order of appearance."""
    return list(dict.fromkeys(dim for each in dims.values() for dim in each if isinstance(dim, str)))


def free_sizes(model: ModelProto) -> list[str]:
    """The sizes that a caller may fix, in order of appearance: symbols, and ``axis 0`` and so on for unnamed ones."""
    return names_in(named(input_specs(model)[0]))


def fixed_sizes(model: ModelProto, other: ModelProto) -> dict[str, int]:
    """The free sizes of a model for which another one, whose inputs have the same names, states numbers."""
    stated = {spec.name: spec.dims or () for spec in input_specs(other)[0]}
    free = named(input_specs(model)[0]).items()
    return {name: size for own, dims in free for name, size in bound(dims, stated.get(own, ())).items()}


def bound(dims: Sequence[int | str | None], sizes: Sequence[object]) -> dict[str, int]:
    """The sizes of the names among dimensions, as far as they are numbers."""
    pairs = zip(dims, sizes, strict=False)
    return {name: size for name, size in pairs if isinstance(name, str) and isinstance(size, int)}


def listed(sizes: Mapping[str, int]) -> str:
    """Sizes as users write them."""
    return ", ".join(f"{name}={size}" for name, size in sizes.items())


def at_sizes(model: ModelProto, sizes: Mapping[str, int]) -> ModelProto:
    """A copy that states numbers in place of some of the model's `free_sizes`."""
    sized = deepcopy(model)
    for _, graph in graphs(sized):
        set_sizes((*graph.input, *graph.output, *graph.value_info), sizes)
    for value in sized.graph.input:
        value.type.CopyFrom(without_made_up_symbols(value.type))
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if not (dim.HasField("dim_value") or dim.dim_param) and f"axis {axis}" in sizes:
                dim.dim_value = sizes[f"axis {axis}"]
    return sized


def related(sizes: Mapping[str, int]) -> dict[str, int]:
    """The sizes, of which those named as calculations with others, such as ``past + seq``, follow from these."""
    found = dict(sizes)
    for name in sizes:
        number = calculated(name, {other: size for other, size in sizes.items() if other != name})
        found[name] = sizes[name] if number is None else number
    return found


def shape_at(dims: Sequence[int | str], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of an input at these sizes of its symbols."""
    return tuple(dim if isinstance(dim, int) else sizes[dim] for dim in dims)


def check_making(specs: Sequence[InputSpec]) -> None:
    """Raise a TooLargeError if an input is too large to be made even at its smallest sizes."""
    dims = named(specs)
    sizes = dict.fromkeys(names_in(dims), 1)
    for each in dims.values():
        check_elements(prod(shape_at(each, sizes)))
