"""The IR version that a model needs."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from operator import attrgetter

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, defs, helper

from reducelower.model.schemas import DEFAULT_DOMAINS, latest_opset, schema
from reducelower.model.skeleton import DEFAULTS_SINCE
from reducelower.model.text import counted

__all__ = ["ir_version_of_opset", "needed_ir_version", "release_initializers"]


@cache
def ir_version_of_opset(opset: int) -> int:
    """The IR version of the onnx release that introduced an opset version (`onnx.helper.VERSION_TABLE`).

    Opset versions 2 to 4 had no release of their own and count as part of the next one.
    """
    releases = helper.OP_SET_ID_VERSION_MAP.items()
    ir_versions = [version for (domain, number), version in releases if domain == "ai.onnx" and number >= opset]
    return min(ir_versions, default=max(version for _, version in releases))


def release_initializers(model: ModelProto, before: int) -> str:
    """Take initializers out of the graph inputs of a model that had an IR version below 4; say so if there were any.

    Before IR version 4, an initializer had to be an input, and was a constant. Since then, such an input is a default
    that callers may override, and runtimes fold and prepack nothing that is computed from it.
    """
    if not before < DEFAULTS_SINCE <= model.ir_version:
        return ""
    initializers = {tensor.name for tensor in model.graph.initializer}
    kept = [value for value in model.graph.input if value.name not in initializers]
    count = len(model.graph.input) - len(kept)
    if not count:
        return ""
    del model.graph.input[:]
    model.graph.input.extend(kept)
    left = f"{counted(count, 'initializer')} left the graph inputs"
    return f"{left}: from IR version {DEFAULTS_SINCE} on they would be defaults that callers may override"


# Source: the list of IR versions in onnx.proto.
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


def needed_ir_version(model: ModelProto) -> int:
    """The oldest IR version that allows the contents of a model, apart from its operators and their constants.

    Defaults that callers may override need IR version 4; before, the initializer of an input is a constant.

    Metadata, and types stated in functions, came with IR version 10. Older readers skip them, so they do not count.
    """
    needed = _version_outside_nodes(model.graph)
    if model.graph.initializer and model.ir_version >= DEFAULTS_SINCE:
        needed = max(needed, DEFAULTS_SINCE)
    if model.functions:
        needed = max(needed, 8)
    if model.training_info:
        needed = max(needed, 7)
    if any(function.overload for function in model.functions):
        needed = max(needed, 10)
    if any(field.name == "configuration" for field, _ in model.ListFields()):
        needed = max(needed, 11)
    # At no opset version does Constant take a type of a newer IR version than that opset's own.
    others = [node for node in model.graph.node if node.op_type != "Constant"]
    return max(needed, _version_of_nodes(others), *(_version_of_nodes(function.node) for function in model.functions))


# Large models have as many value_info entries as nodes.
_ELEMENT_TYPE = attrgetter("type.tensor_type.elem_type")

_Kind = defs.OpSchema.AttrType
_PLAIN = (_Kind.INT, _Kind.INTS, _Kind.FLOAT, _Kind.FLOATS, _Kind.STRING, _Kind.STRINGS)


@cache
def _may_hold(op_type: str) -> bool:
    """Whether a node of the operator may contain tensors, types or graphs, which may need a newer IR version."""
    newest = schema(op_type, latest_opset())
    return newest is None or any(attribute.type not in _PLAIN for attribute in newest.attributes.values())


def _version_outside_nodes(graph: GraphProto) -> int:
    needed = 3
    if graph.initializer:
        inputs = {value.name for value in graph.input}
        if any(tensor.name not in inputs for tensor in graph.initializer):
            needed = 4
    if graph.sparse_initializer or graph.quantization_annotation:
        needed = 5
    for tensor in graph.initializer:
        needed = max(needed, _TYPE_VERSIONS.get(tensor.data_type, 3))
    return max(needed, *map(_version_of_values, (graph.input, graph.output, graph.value_info)))


def _version_of_values(values: Collection[ValueInfoProto]) -> int:
    element_types = set(map(_ELEMENT_TYPE, values))
    if 0 in element_types:  # not a tensor, or a tensor without element type
        return max(_version_of_type(value.type) for value in values)
    return max((_TYPE_VERSIONS.get(element_type, 3) for element_type in element_types), default=3)


def _version_of_nodes(nodes: Collection[NodeProto]) -> int:
    # Large models have few kinds of nodes, and looking at each node takes long.
    kinds = set(map(_KIND, nodes))
    holders = {kind for kind in kinds if kind[1] not in DEFAULT_DOMAINS or _may_hold(kind[0])}
    needed = 10 if any(overload for _, _, overload in kinds) else 3
    return max([needed, *(_version_of_node(node) for node in (nodes if holders else ()) if _KIND(node) in holders)])


_KIND = attrgetter("op_type", "domain", "overload")


def _version_of_node(node: NodeProto) -> int:
    needed = 3
    for attribute in node.attribute:
        kind = attribute.type
        if kind in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
            for graph in (attribute.g, *attribute.graphs):
                needed = max(needed, _version_outside_nodes(graph), _version_of_nodes(graph.node))
        elif kind == AttributeProto.TENSOR:
            needed = max(needed, _TYPE_VERSIONS.get(attribute.t.data_type, 3))
        elif kind in (AttributeProto.TYPE_PROTO, AttributeProto.TYPE_PROTOS):
            needed = max(needed, 8)
    return needed


def _version_of_type(value_type: TypeProto) -> int:
    kind = value_type.WhichOneof("value")
    if kind == "optional_type":
        return max(8, _version_of_type(value_type.optional_type.elem_type))
    if kind == "sequence_type":
        return _version_of_type(value_type.sequence_type.elem_type)
    if kind == "tensor_type":
        return _TYPE_VERSIONS.get(value_type.tensor_type.elem_type, 3)
    return 3
