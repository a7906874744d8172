"""Copies of a model for shape inference: without weights, and with the types that the user declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

from google.protobuf.message import Message
from onnx import GraphProto, ModelProto, TensorProto, TypeProto

from reducelower.model.graph import graphs
from reducelower.model.schemas import parse_element_type
from reducelower.model.value_info import clear_sizes_below_zero

__all__ = [
    "DEFAULTS_SINCE",
    "LARGEST_CONSTANT",
    "LARGEST_INFERRED",
    "declare",
    "names_in",
    "skeleton",
    "without_weights",
]

DEFAULTS_SINCE = 4
"""From this IR version on, initializers need not be inputs; an initializer of an input is only its default."""

LARGEST_INFERRED = 1024
"""The most elements of a constant whose value shape inference may read."""

LARGEST_CONSTANT = 65_536
"""The most elements of a constant whose value a rule may read; larger ones are weights."""


def skeleton(model: ModelProto, largest: int = LARGEST_INFERRED) -> ModelProto:
    """A copy of the model for shape inference, in which larger initializers have no values."""
    bare = without_weights(model, largest)
    clear_sizes_below_zero((*bare.graph.input, *bare.graph.output, *bare.graph.value_info))
    return bare


def without_weights(model: ModelProto, largest: int = LARGEST_INFERRED) -> ModelProto:
    """A copy of the model in which larger initializers have no values, made without copying them."""
    bare = ModelProto(**_fields(model, but="graph"))
    if model.HasField("graph"):
        bare.graph.MergeFrom(GraphProto(**_fields(model.graph, but="initializer")))
        bare.graph.initializer.extend(
            TensorProto(name=each.name, data_type=each.data_type, dims=each.dims) if prod(each.dims) > largest else each
            for each in model.graph.initializer
        )
    return bare


def _fields(message: Message, *, but: str) -> dict[str, Any]:
    return {field.name: value for field, value in message.ListFields() if field.name != but}


def declare(model: ModelProto, element_types: Mapping[str, str], ranks: Mapping[str, int]) -> None:
    """State the declared types in all graphs of a model, so that inference starts from them."""
    numbers = {name: parse_element_type(spelled) for name, spelled in element_types.items()}
    for _, graph in graphs(model):
        stated = {value.name: value for value in (*graph.value_info, *graph.output, *graph.input)}
        for name in sorted((numbers.keys() | ranks.keys()) & set(_defined_in(graph))):
            value = stated[name] if name in stated else graph.value_info.add(name=name)
            _complete(value.type, numbers.get(name), ranks.get(name))


def _complete(stated: TypeProto, element_type: int | None, rank: int | None) -> None:
    if stated.WhichOneof("value") not in (None, "tensor_type"):
        return
    tensor = stated.tensor_type
    if element_type is not None:
        tensor.elem_type = element_type
    if rank is not None and not tensor.HasField("shape"):
        tensor.shape.SetInParent()
        for _ in range(rank):
            tensor.shape.dim.add()


def names_in(model: ModelProto) -> set[str]:
    """All value names in the graphs of a model."""
    return {name for _, graph in graphs(model) for name in _defined_in(graph)}


def _defined_in(graph: GraphProto) -> Iterator[str]:
    yield from (value.name for value in graph.input)
    yield from (tensor.name for tensor in graph.initializer)
    for node in graph.node:
        yield from node.output
