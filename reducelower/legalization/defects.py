"""Find defects that protobuf and the checker accept but no valid model has.

The engine assumes a valid model and may raise any error for a broken one. A walk through every field to say what is
wrong is worth its time only after such a failure, or before a step that could crash the process.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from google.protobuf.message import Message
from onnx import ModelProto, NodeProto, TensorProto, checker

from reducelower.legalization.functions import find_call_defect
from reducelower.model.graph import subgraphs
from reducelower.text import one_line

__all__ = ["find_defect"]

_ELEMENT_TYPE_FIELDS = ("data_type", "elem_type", "key_type")

_DEEPEST_GRAPH = 30
"""The deepest nesting of subgraphs: protobuf reads 100 nested messages, three per subgraph."""


def find_defect(model: ModelProto) -> str:
    """Describe the first defect in a sentence; empty if there is none.

    This walks through every field: use it to explain a failure, not in every run.
    """
    return _nesting_defect(model) or _field_defect(model) or find_call_defect(model) or _objection(model)


def _nesting_defect(model: ModelProto) -> str:
    pending: list[tuple[Iterable[NodeProto], int]] = [(model.graph.node, 0)]
    pending += [(function.node, 0) for function in model.functions]
    while pending:
        nodes, depth = pending.pop()
        if depth > _DEEPEST_GRAPH:
            return f"it nests subgraphs more than {_DEEPEST_GRAPH} deep, deeper than protobuf reads"
        pending.extend((graph.node, depth + 1) for node in nodes for _, _, graph in subgraphs(node))
    return ""


def _field_defect(model: ModelProto) -> str:
    """A name or an element type that cannot be read, which the checker accepts."""
    element_types = set(TensorProto.DataType.values())
    pending: list[Message] = [model]
    while pending:
        for field, value in pending.pop().ListFields():
            values: Any = [value] if isinstance(value, (Message, str, bytes, int, float)) else value
            if field.message_type is not None:
                pending.extend(values)
            elif field.type == field.TYPE_STRING and any(isinstance(item, bytes) for item in values):
                return "it holds a name or text that is not UTF-8"
            elif field.name in _ELEMENT_TYPE_FIELDS and not element_types.issuperset(values):
                return f"it uses element type {value}, which the onnx installed does not know"
    return ""


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
