"""What the user declares of values whose types nothing tells, written into a model that is only there for its types."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, TypeProto

__all__ = ["declare", "undefined"]


def declare(graph: GraphProto, element_types: Mapping[str, int], ranks: Mapping[str, int]) -> None:
    """State the declared types in a graph and in those inside it, so that inference goes on from them.

    Args:
        graph: changed in place.
        element_types: element type (`TensorProto.DataType`) by value name.
        ranks: number of dimensions by value name.
    """
    if not element_types and not ranks:
        return
    stated = {value.name: value for value in (*graph.value_info, *graph.output, *graph.input)}
    for name in sorted((element_types.keys() | ranks.keys()) & set(_defined_in(graph))):
        value = stated[name] if name in stated else graph.value_info.add(name=name)
        _complete(value.type, element_types.get(name), ranks.get(name))
    for inner in _inside(graph):
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


def undefined(model: ModelProto, names: Collection[str]) -> tuple[list[str], set[str]]:
    """Those of some names that no graph or function of a model gives to a value, and the names that there are."""
    known: set[str] = set()
    holders: list[GraphProto | FunctionProto] = [model.graph, *model.functions]
    while holders:
        holder = holders.pop()
        known.update(_defined_in(holder))
        holders.extend(_inside(holder))
    return sorted(set(names) - known), known


def _defined_in(holder: GraphProto | FunctionProto) -> Iterator[str]:
    if isinstance(holder, GraphProto):
        yield from (value.name for value in holder.input)
        yield from (tensor.name for tensor in holder.initializer)
    else:
        yield from holder.input
    for node in holder.node:
        yield from node.output


def _inside(holder: GraphProto | FunctionProto) -> Iterator[GraphProto]:
    for node in holder.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield attribute.g
            yield from attribute.graphs
