"""Write element types and ranks that the user declares into a copy of the model used for shape inference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import GraphProto, ModelProto, TypeProto

from reducelower.model.graph import graphs, subgraphs

__all__ = ["declare", "names_in"]


def declare(holder: GraphProto, element_types: Mapping[str, int], ranks: Mapping[str, int]) -> None:
    """State the declared types in a graph and its subgraphs, so that inference starts from them."""
    if not element_types and not ranks:
        return
    stated = {value.name: value for value in (*holder.value_info, *holder.output, *holder.input)}
    for name in sorted((element_types.keys() | ranks.keys()) & set(_defined_in(holder))):
        value = stated[name] if name in stated else holder.value_info.add(name=name)
        _complete(value.type, element_types.get(name), ranks.get(name))
    for node in holder.node:
        for _, _, inner in subgraphs(node):
            declare(inner, element_types, ranks)


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


def _defined_in(holder: GraphProto) -> Iterator[str]:
    yield from (value.name for value in holder.input)
    yield from (tensor.name for tensor in holder.initializer)
    for node in holder.node:
        yield from node.output
