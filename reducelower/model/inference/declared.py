"""State the element types and ranks that the user declares in a copy of the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import GraphProto, ModelProto, TypeProto

from reducelower.model.graph import graphs
from reducelower.model.schemas import parse_element_type

__all__ = ["declare", "names_in"]


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
