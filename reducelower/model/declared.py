"""What the user declares of values whose types nothing tells, written into a model that is only there for its types."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from onnx import FunctionProto, GraphProto, ModelProto, TypeProto

from reducelower.model.graph import bodies, subgraphs

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
    for node in graph.node:
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


def undefined(model: ModelProto, names: Collection[str]) -> tuple[list[str], set[str]]:
    """Those of some names that no graph or function of a model gives to a value, and the names that there are."""
    known: set[str] = set()
    for _, holder in bodies(model):
        known.update(_defined_in(holder))
    return sorted(set(names) - known), known


def _defined_in(holder: GraphProto | FunctionProto) -> Iterator[str]:
    if isinstance(holder, GraphProto):
        yield from (value.name for value in holder.input)
        yield from (tensor.name for tensor in holder.initializer)
    else:
        yield from holder.input
    for node in holder.node:
        yield from node.output
