"""Which float types a model mentions."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import AttributeProto, GraphProto, ModelProto, TensorProto

from reducelower.model.graph import all_nodes, subgraphs
from reducelower.model.numbers import FLOATS

__all__ = ["TYPES_IN_ATTRIBUTES", "float_types"]

TYPES_IN_ATTRIBUTES = frozenset({"to", "dtype", "output_dtype", "stash_type"})


def float_types(model: ModelProto) -> set[int]:
    """The float types that a model mentions; casts between types round on purpose."""
    found = {value.type.tensor_type.elem_type for value in model.graph.input}
    found |= {tensor.data_type for tensor in _tensors(model.graph)}
    for node in all_nodes(model):
        for attribute in node.attribute:
            if attribute.name in TYPES_IN_ATTRIBUTES and attribute.type == AttributeProto.INT:
                found |= {attribute.i} if attribute.name != "stash_type" else set()
            if attribute.type in (AttributeProto.FLOAT, AttributeProto.FLOATS) and node.op_type == "Constant":
                found.add(TensorProto.FLOAT)
    return found & set(FLOATS)


def _tensors(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                yield attribute.t
        for _, _, inner in subgraphs(node):
            yield from _tensors(inner)
