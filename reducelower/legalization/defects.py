"""Find defects that protobuf and the checker accept but no valid model has.

The engine assumes a valid model and may raise any error for a broken one. A walk through every field to say what is
wrong is worth its time only after such a failure, or before a step that could crash the process.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from google.protobuf.message import Message
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, checker, numpy_helper

from reducelower.legalization.functions import find_call_defect
from reducelower.model.attributes import NAMING_TYPES
from reducelower.model.graph import bodies, subgraphs
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.text import one_line

__all__ = ["find_defect"]

_ELEMENT_TYPE_FIELDS = ("data_type", "elem_type", "key_type")

_DEEPEST_GRAPH = 30
"""The deepest nesting of subgraphs: protobuf reads 100 nested messages, three per subgraph."""


def find_defect(model: ModelProto) -> str:
    """Describe the first defect in a sentence; empty if there is none.

    This walks through every field: use it to explain a failure, not in every run.
    """
    defect = _nesting_defect(model) or _field_defect(model) or find_call_defect(model) or _node_defects(model)
    return defect or _objection(model)


def _objection(model: ModelProto) -> str:
    """The objection of onnx's checker; empty if it has none, or would look for external data in the current folder."""
    try:
        serialized = model.SerializeToString()
        if b"location" not in serialized:
            checker.check_model(serialized)
    except checker.ValidationError as error:
        return f"the ONNX checker refuses it: {one_line(error)[:200]}"
    except Exception:  # it raises several types if it cannot read the model at all
        return ""
    return ""


def _field_defect(model: ModelProto) -> str:
    element_types = set(TensorProto.DataType.values())
    pending: list[Message] = [model]
    while pending:
        message = pending.pop()
        if isinstance(message, TensorProto) and (odd := _tensor_defect(message)):
            return odd
        for field, value in message.ListFields():
            values: Any = [value] if isinstance(value, (Message, str, bytes, int, float)) else value
            if field.message_type is not None:
                pending.extend(values)
            elif field.type == field.TYPE_STRING and any(isinstance(item, bytes) for item in values):
                return "it holds a name or text that is not UTF-8"
            elif field.name in _ELEMENT_TYPE_FIELDS and not element_types.issuperset(values):
                return f"it uses element type {value}, which the onnx installed does not know"
    return ""


def _tensor_defect(tensor: TensorProto) -> str:
    if tensor.data_location == TensorProto.EXTERNAL:
        return ""
    try:
        numpy_helper.to_array(tensor)
    except Exception as error:  # numpy raises several types
        return f"the tensor {tensor.name!r} cannot be read: {one_line(error)[:200]}"
    return ""


def _nesting_defect(model: ModelProto) -> str:
    pending: list[tuple[Iterable[NodeProto], int]] = [(model.graph.node, 0)]
    pending += [(function.node, 0) for function in model.functions]
    while pending:
        nodes, depth = pending.pop()
        if depth > _DEEPEST_GRAPH:
            return f"it nests subgraphs more than {_DEEPEST_GRAPH} deep, deeper than protobuf reads"
        pending.extend((graph.node, depth + 1) for node in nodes for _, _, graph in subgraphs(node))
    return ""


def _node_defects(model: ModelProto) -> str:
    for _, holder in bodies(model):
        for index, node in enumerate(holder.node):
            if odd := _node_defect(node):
                return f"{node.op_type} {node.name or f'#{index}'!r} {odd}"
    return ""


def _node_defect(node: NodeProto) -> str:
    """A defect of a node that onnx's checker accepts."""
    names = [attribute.name for attribute in node.attribute]
    if len(set(names)) < len(names):
        return "has an attribute twice"
    if node.domain not in DEFAULT_DOMAINS:
        return ""
    for attribute in node.attribute:
        asks = attribute.name in NAMING_TYPES and not attribute.ref_attr_name
        if asks and attribute.type == AttributeProto.INT and attribute.i not in TensorProto.DataType.values():
            return f"asks for element type {attribute.i}, which the onnx installed does not know"
    counts = {len(graph.output) for _, _, graph in subgraphs(node)} if node.op_type == "If" else set()
    if counts - {len(node.output)}:
        return "and its branches have different numbers of outputs"
    return ""
