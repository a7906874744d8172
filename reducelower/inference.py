"""Element types and shapes that nothing in the model states: shape inference, run once and only when asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    shape_inference,
)

__all__ = ["Inference", "skeleton", "subgraphs"]

# Tensors above this many elements are weights; shape inference only reads the values of small ones.
_SMALL = 1024

GraphKey = tuple[int, ...]


def subgraphs(node: NodeProto) -> Iterator[tuple[int, str, GraphProto]]:
    """Every graph among the attributes of a node: its number among them, the attribute's name, the graph."""
    number = 0
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield number, attribute.name, attribute.g
            number += 1
        elif attribute.type == AttributeProto.GRAPHS:
            for graph in attribute.graphs:
                yield number, attribute.name, graph
                number += 1


def _strip(tensor: TensorProto) -> TensorProto:
    """The tensor itself if it is small, else one of the same name, type and shape without its values."""
    if prod(tensor.dims) <= _SMALL:
        return tensor
    return TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)


def skeleton(model: ModelProto) -> ModelProto:
    """A copy of the model whose initializers carry no weights; nothing large is copied on the way."""
    bare = ModelProto(ir_version=model.ir_version)
    bare.opset_import.extend(model.opset_import)
    bare.functions.extend(model.functions)
    source, graph = model.graph, bare.graph
    graph.name = source.name
    graph.node.extend(source.node)
    graph.input.extend(source.input)
    graph.output.extend(source.output)
    graph.value_info.extend(source.value_info)
    graph.sparse_initializer.extend(source.sparse_initializer)
    graph.initializer.extend(map(_strip, source.initializer))
    return bare


class Inference:
    """The types of the values of one model, as onnx's shape inference sees them.

    Inference runs at the first question, on a copy without weights (`onnx.shape_inference.infer_shapes` takes models
    up to 2 GiB), and subgraphs are covered.
    """

    def __init__(self, source: ModelProto) -> None:
        self._source = source
        self._types: dict[GraphKey, dict[str, TypeProto]] | None = None

    def types(self, key: GraphKey) -> Mapping[str, TypeProto]:
        """Types by value name of the graph at `key`: positions of node and subgraph, from the main graph inward."""
        if self._types is None:
            self._types = {}
            try:
                inferred = shape_inference.infer_shapes(skeleton(self._source), data_prop=True)
            except Exception:
                # A model that inference itself rejects (an unknown operator, a wrong declared shape) has no inferred
                # types; whoever needs one refuses and names the value.
                return {}
            self._collect(inferred.graph, ())
        return self._types.get(key, {})

    def _collect(self, graph: GraphProto, key: GraphKey) -> None:
        assert self._types is not None
        self._types[key] = {value.name: value.type for value in graph.value_info}
        for index, node in enumerate(graph.node):
            for number, _, inner in subgraphs(node):
                self._collect(inner, (*key, index, number))


def infer_body(nodes: list[NodeProto], types: Mapping[str, TypeProto], opset: int) -> dict[str, TypeProto]:
    """Types of everything computed by a few nodes that stand alone, from the types of what they read."""
    graph = GraphProto(name="body")
    graph.node.extend(nodes)
    for name, value_type in types.items():
        graph.input.add(name=name).type.CopyFrom(value_type)
    model = ModelProto(ir_version=10, graph=graph)
    model.opset_import.add(version=opset)
    try:
        inferred = shape_inference.infer_shapes(model, data_prop=True)
    except Exception:
        return {}
    return {value.name: value.type for value in inferred.graph.value_info}


def function_key(function: FunctionProto) -> tuple[str, str, str]:
    """What calls of a model-local function name it by: domain, name and overload."""
    return function.domain, function.name, function.overload
