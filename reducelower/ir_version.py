"""The IR version a model needs."""

from __future__ import annotations

from functools import cache

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper

__all__ = ["ir_version_of_opset", "needed_ir_version"]


@cache
def ir_version_of_opset(opset: int) -> int:
    """The IR version of the onnx release that brought an opset version (`onnx.helper.VERSION_TABLE`)."""
    return helper.OP_SET_ID_VERSION_MAP.get(("ai.onnx", opset), max(helper.OP_SET_ID_VERSION_MAP.values()))


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


def needed_ir_version(model: ModelProto, most: int) -> int:
    """The oldest IR version that has everything the model uses, apart from its operators; never above `most`."""
    return min(_needed(model), most)


def _needed(model: ModelProto) -> int:
    needed = 3
    if model.functions:
        needed = 8
    if model.training_info:
        needed = max(needed, 7)
    if any(function.overload or function.value_info or function.metadata_props for function in model.functions):
        needed = max(needed, 10)
    if model.ListFields() and any(field.name == "configuration" for field, _ in model.ListFields()):
        needed = max(needed, 11)
    needed = max(needed, _graph(model.graph, is_main=True))
    for function in model.functions:
        needed = max(needed, _nodes(function))
    return needed


def _graph(graph: GraphProto, *, is_main: bool = False) -> int:
    needed = 3
    if graph.initializer:
        inputs = {value.name for value in graph.input}
        if any(tensor.name not in inputs for tensor in graph.initializer):
            needed = 4
    if graph.sparse_initializer:
        needed = max(needed, 5)
    if graph.quantization_annotation:
        needed = max(needed, 5)
    if graph.metadata_props:
        needed = max(needed, 10)
    for tensor in graph.initializer:
        needed = max(needed, _TYPE_VERSIONS.get(tensor.data_type, 3))
        if tensor.metadata_props:
            needed = max(needed, 10)
    for values in (graph.input, graph.output, graph.value_info):
        for value in values:
            needed = max(needed, _type(value.type))
            if value.metadata_props:
                needed = max(needed, 10)
    return max(needed, _nodes(graph))


def _nodes(holder: GraphProto | FunctionProto) -> int:
    return max(map(_node, holder.node), default=3)


def _node(node: NodeProto) -> int:
    needed = 3
    if node.metadata_props or node.overload:
        needed = 10
    for attribute in node.attribute:
        kind = attribute.type
        if kind == AttributeProto.GRAPH:
            needed = max(needed, _graph(attribute.g))
        elif kind == AttributeProto.GRAPHS:
            needed = max(needed, *map(_graph, attribute.graphs), 3)
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
