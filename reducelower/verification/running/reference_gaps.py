"""Operators for which onnx's reference evaluator is no evidence (columns ``reference*`` of `operators.toml`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper

from reducelower.files.external import all_tensors
from reducelower.model.graph import all_nodes
from reducelower.model.numbers import FLOATS, HALVES
from reducelower.model.schemas import DEFAULT_DOMAINS, latest_opset
from reducelower.verification.operators import column
from reducelower.verification.running.source import default_opset

__all__ = ["TYPES_IN_ATTRIBUTES", "float_types", "no_evidence", "wrong_in_reference"]

_NEWEST_BEFORE_1_23 = 27
_OLDEST = 7  # below, the evaluator mostly runs the implementation of opset 6 or 7
_DOMAINS = DEFAULT_DOMAINS | {"ai.onnx.ml"}


def wrong_in_reference(model: ModelProto) -> list[str]:
    """Operators of the model that the reference evaluator computes wrongly, or as in a newer opset version."""
    opset = default_opset(model)
    nodes = [node for node in all_nodes(model) if node.domain in _DOMAINS]
    if opset < _OLDEST:
        return sorted({node.op_type for node in nodes if node.domain in DEFAULT_DOMAINS})
    columns = [column("reference")]
    if latest_opset() <= _NEWEST_BEFORE_1_23:
        columns.append(column("reference_before_1_23"))
    rows = [(node, table[node.op_type]) for node in nodes for table in columns if node.op_type in table]
    has_halves = any(row.get("halves") for _, row in rows) and not float_types(model).isdisjoint(HALVES)
    return sorted({node.op_type for node, row in rows if _is_wrong(node, row, opset, has_halves)})


def _is_wrong(node: NodeProto, row: Mapping[str, Any], opset: int, has_halves: bool) -> bool:
    if row.get("wrong") or opset < row.get("below", 0) or (has_halves and row.get("halves")):
        return True
    unread = row.get("input", len(node.input))
    if any(node.input[unread : unread + 1]):
        return True
    right = row.get("only", {})
    attributes = (item for item in node.attribute if item.name in right)
    return any(item.ref_attr_name or not _is_right(item, right[item.name]) for item in attributes)


def _is_right(item: AttributeProto, right: Any) -> bool:
    """Whether an attribute has the value that the evaluator assumes, or one of several, or repeats those."""
    value = helper.get_attribute_value(item)
    if isinstance(value, bytes):
        value = value.decode()
    if not isinstance(right, list):
        return bool(value == right)
    if isinstance(value, int):
        return value in right
    values = [each.decode() if isinstance(each, bytes) else each for each in value]
    return bool(values == right * (len(values) // len(right) if right else 1))


TYPES_IN_ATTRIBUTES = frozenset({"to", "dtype", "output_dtype"})


def float_types(model: ModelProto) -> set[int]:
    """The float types that a model mentions; casts between types round on purpose."""
    types = {value.type.tensor_type.elem_type for value in model.graph.input}
    types |= {tensor.data_type for tensor in all_tensors(model.graph)}
    for node in all_nodes(model):
        for attribute in node.attribute:
            if attribute.name in TYPES_IN_ATTRIBUTES and attribute.type == AttributeProto.INT:
                types |= {attribute.i} if attribute.name != "stash_type" else set()
            if attribute.type in (AttributeProto.FLOAT, AttributeProto.FLOATS) and node.op_type == "Constant":
                types.add(TensorProto.FLOAT)
    return types & set(FLOATS)


def no_evidence(sides: Iterable[tuple[str, ModelProto]]) -> str:
    """Why a difference between two sides says nothing against a conversion; empty if it does.

    A side is the name of a runtime and a model.
    """
    wrong = sorted({kind for runtime, model in sides if runtime == "reference" for kind in wrong_in_reference(model)})
    if not wrong:
        return ""
    operators = ", ".join(wrong[:5])
    return f"onnxruntime does not run it, and the reference evaluator is no evidence for {operators} as it stands here"
