"""The operators of a model, graph by graph, and models in which one thing is changed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, TensorProto, numpy_helper

OTHERS = {
    "Abs": "Neg", "Max": "Min", "Min": "Max", "Add": "Sub", "Mul": "Div", "Div": "Mul", "Sub": "Add", "Log": "Exp",
    "Pow": "Add",
}  # fmt: skip


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


def changed(given: ModelProto) -> Iterator[ModelProto]:
    """The model with one operator or one number replaced by another, for each of them but a given s and b."""
    for index, node in enumerate(given.graph.node):
        instead = OTHERS.get(node.op_type, "ReduceProd" if node.op_type.startswith("Reduce") else "Sigmoid")
        if node.op_type != "Shape" and (instead != "Sigmoid" or len(node.input) == 1):
            other = ModelProto()
            other.CopyFrom(given)
            other.graph.node[index].op_type = instead
            yield other
    for index, tensor in enumerate(given.graph.initializer):
        if tensor.data_type == TensorProto.FLOAT and tensor.name not in ("s", "b"):
            other = ModelProto()
            other.CopyFrom(given)
            value = numpy_helper.to_array(tensor) * np.float32(0.75)
            other.graph.initializer[index].CopyFrom(numpy_helper.from_array(value, tensor.name))
            yield other
