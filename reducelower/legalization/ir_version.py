"""The IR version a model needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache
from operator import attrgetter

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, defs, helper

from reducelower.model.census import Census, Stated
from reducelower.model.nodelist import NodeList, ParsedNodes
from reducelower.model.schemas import latest_opset, schema

__all__ = ["ir_version_of_opset", "ir_version_to_read", "needed_ir_version"]


@cache
def ir_version_of_opset(opset: int) -> int:
    """The IR version of the onnx release that brought an opset version (`onnx.helper.VERSION_TABLE`).

    Opset versions 2 to 4 came with no release of their own: the next one brought them.
    """
    known = helper.OP_SET_ID_VERSION_MAP.items()
    later = [version for (domain, number), version in known if domain == "ai.onnx" and number >= opset]
    return min(later, default=max(version for _, version in known))


# Source: the change log of IR versions in onnx.proto.
_NEWER_TYPES = {
    **dict.fromkeys(("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"), 9),
    **dict.fromkeys(("UINT4", "INT4"), 10),
    "FLOAT4E2M1": 11,
    "FLOAT8E8M0": 12,
    **dict.fromkeys(("UINT2", "INT2"), 13),
}
_TYPE_VERSIONS = {
    TensorProto.DataType.Value(name): version
    for name, version in _NEWER_TYPES.items()
    if name in set(TensorProto.DataType.keys())
}


def needed_ir_version(model: ModelProto, nodes: NodeList, census: Census | None, stated: Stated | None = None) -> int:
    """The oldest IR version whose readers understand a model, apart from its operators and their constants.

    Metadata and the types that functions state of values came with IR version 10; a reader that does not know them
    skips them, so they need no newer one.

    Args:
        nodes: the nodes of its main graph; those in the message are not looked at.
        census: the census of the model as it was before conversion, where there is one. Rewrites add nothing that
            needs a newer IR version than what they replace.
        stated: what the main graph stated and states, where that is known in short.
    """
    needed = _outside_nodes(model.graph, None if stated is None else stated.element_types)
    if model.functions:
        needed = max(needed, 8)
    if model.training_info:
        needed = max(needed, 7)
    if any(function.overload for function in model.functions):
        needed = max(needed, 10)
    if any(field.name == "configuration" for field, _ in model.ListFields()):
        needed = max(needed, 11)
    if census is None or not census.is_plain:
        return max(needed, _nodes(nodes), *(_nodes(function.node) for function in model.functions))
    if census.has_overloads:
        needed = max(needed, 10)
    # No opset version has a Constant of a type that came with a newer IR version than it did.
    holding = set(filter(_may_hold, census.operators)) - {"Constant"}
    if holding:
        needed = max(needed, _nodes(node for _, node in nodes.of(_may_hold)))
    return max([needed, *(_nodes(function.node) for function in model.functions)])


def ir_version_to_read(model: ModelProto) -> int:
    """As `needed_ir_version`, of a whole model."""
    return needed_ir_version(model, ParsedNodes(model.graph.node), None)


# Large models state the types of as many values as they have nodes.
_ELEMENT_TYPE = attrgetter("type.tensor_type.elem_type")

_Kind = defs.OpSchema.AttrType
_PLAIN = (_Kind.INT, _Kind.INTS, _Kind.FLOAT, _Kind.FLOATS, _Kind.STRING, _Kind.STRINGS)


@cache
def _may_hold(op_type: str) -> bool:
    """Whether a node of the operator may hold tensors, types or graphs, which may need a newer IR version."""
    found = schema(op_type, latest_opset())
    return found is None or any(attribute.type not in _PLAIN for attribute in found.attributes.values())


def _outside_nodes(graph: GraphProto, stated: Collection[int] | None = None) -> int:
    needed = 3
    if graph.initializer:
        inputs = {value.name for value in graph.input}
        if any(tensor.name not in inputs for tensor in graph.initializer):
            needed = 4
    if graph.sparse_initializer or graph.quantization_annotation:
        needed = 5
    for tensor in graph.initializer:
        needed = max(needed, _TYPE_VERSIONS.get(tensor.data_type, 3))
    inner = graph.value_info if stated is None or not _TYPE_VERSIONS.keys().isdisjoint(stated) else ()
    return max(needed, *map(_values, (graph.input, graph.output, inner)))


def _values(values: Collection[ValueInfoProto]) -> int:
    element_types = set(map(_ELEMENT_TYPE, values))
    if 0 in element_types:  # something else than a tensor, or a tensor of no type
        return max(_type(value.type) for value in values)
    return max((_TYPE_VERSIONS.get(element_type, 3) for element_type in element_types), default=3)


def _nodes(nodes: Iterable[NodeProto]) -> int:
    return max(map(_node, nodes), default=3)


def _node(node: NodeProto) -> int:
    needed = 10 if node.overload else 3
    for attribute in node.attribute:
        kind = attribute.type
        if kind in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
            for graph in (attribute.g, *attribute.graphs):
                needed = max(needed, _outside_nodes(graph), _nodes(graph.node))
        elif kind == AttributeProto.TENSOR:
            needed = max(needed, _TYPE_VERSIONS.get(attribute.t.data_type, 3))
        elif kind in (AttributeProto.TYPE_PROTO, AttributeProto.TYPE_PROTOS):
            needed = max(needed, 8)
    return needed


def _type(value_type: TypeProto) -> int:
    kind = value_type.WhichOneof("value")
    if kind == "optional_type":
        return max(8, _type(value_type.optional_type.elem_type))
    if kind == "sequence_type":
        return _type(value_type.sequence_type.elem_type)
    if kind == "tensor_type":
        return _TYPE_VERSIONS.get(value_type.tensor_type.elem_type, 3)
    return 3
