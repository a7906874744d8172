"""The operators of a model, graph by graph."""

from __future__ import annotations

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto


def operators_by_graph(model: ModelProto) -> list[list[str]]:
    """The operator types of every graph and function body, in order."""
    found: list[list[str]] = []
    for holder in (model.graph, *model.functions):
        found += _operators(holder)
    return found


def _operators(holder: GraphProto | FunctionProto) -> list[list[str]]:
    found = [[node.op_type for node in holder.node]]
    for node in holder.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                found += _operators(attribute.g)
    return found
