"""Operators on which onnx's reference evaluator is no evidence (onnx 1.23)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnx import ModelProto, NodeProto, helper

from reducelower.model.graph import all_nodes
from reducelower.model.schemas import DEFAULT_DOMAINS, latest_opset
from reducelower.verification.running.source import default_opset

__all__ = ["wrong_in_reference"]

_OLD: Mapping[str, int] = {
    "BatchNormalization": 14,
    "Dropout": 12,
    "Hardmax": 13,
    "LogSoftmax": 13,
    "Resize": 11,
    "RoiAlign": 16,
    "Softmax": 13,
    "Upsample": 10,
}
"""Below this opset the reference evaluator runs a newer behaviour of the operator (measured on single nodes)."""

_ROUNDED = frozenset({"QLinearConv", "QLinearMatMul"})
"""The evaluator of onnx 1.23 adds their zero point before it rounds, so that an odd one sends ties the other way."""

_UNREAD: Mapping[str, Mapping[str, Any]] = {
    "BatchNormalization": {"spatial": 1},
    "GRU": {"activations": [b"Sigmoid", b"Tanh"], "activation_alpha": [], "activation_beta": [], "clip": None},
    "LSTM": {
        "activations": [b"Sigmoid", b"Tanh", b"Tanh"],
        "activation_alpha": [],
        "activation_beta": [],
        "clip": None,
        "input_forget": 0,
    },
    "LpNormalization": {"p": 2},
    "MaxPool": {"storage_order": 0, "auto_pad": b"NOTSET"},
    "RNN": {"clip": None},
    "TopK": {"sorted": 1},
    "TreeEnsemble": {"post_transform": 0},
    "Unique": {"sorted": 1},
}
"""Attributes that the evaluator of onnx 1.23 does not read, or gets wrong, with what it takes them to be."""

_BEFORE_23 = frozenset(
    {
        "Attention", "BitShift", "Celu", "Elu", "LpNormalization", "NonZero", "ReverseSequence", "Selu", "Softplus",
        "TensorScatter",
    }
)  # fmt: skip
"""Operators that the evaluator of an onnx before 1.23 gets wrong in some case, and that of onnx 1.23 does not."""

_UNREAD_BEFORE_23: Mapping[str, Mapping[str, Any]] = {
    "DFT": {"inverse": 0},
    "GRU": {"direction": b"forward", "layout": 0},
    "LSTM": {"direction": b"forward", "layout": 0},
    "RNN": {"direction": b"forward", "layout": 0},
    "ScatterElements": {"reduction": b"none"},
    "ScatterND": {"reduction": b"none"},
}
"""Attributes that it gets wrong, with what it takes them to be."""

_NEWEST_BEFORE_23 = 27

_SEQUENCE_LENS = 4
"""The input of recurrent operators that it does not read."""

_RECURRENT = frozenset({"GRU", "LSTM", "RNN"})

_OLDEST = 7  # most implementations of the pairs 1 -> 6 and 6 -> 7 are shared


def wrong_in_reference(model: ModelProto) -> list[str]:
    """Operators of the model that the reference evaluator runs with the behaviour of a newer opset, or wrongly."""
    opset = default_opset(model)
    kinds = {node.op_type for node in all_nodes(model) if node.domain in DEFAULT_DOMAINS}
    if opset < _OLDEST:
        return sorted(kinds)
    wrong = {node.op_type for node in all_nodes(model) if _is_read_in_part(node)} | (kinds & _ROUNDED)
    if latest_opset() <= _NEWEST_BEFORE_23:
        wrong |= kinds & _BEFORE_23
    return sorted(wrong | {kind for kind in kinds if opset < _OLD.get(kind, 0)})


def _is_read_in_part(node: NodeProto) -> bool:
    """Whether the reference evaluator passes over something that a node says."""
    unread = dict(_UNREAD.get(node.op_type, {}))
    if latest_opset() <= _NEWEST_BEFORE_23:
        unread |= _UNREAD_BEFORE_23.get(node.op_type, {})
    if not unread:
        return False
    if node.op_type in _RECURRENT and len(node.input) > _SEQUENCE_LENS and node.input[_SEQUENCE_LENS]:
        return True
    for item in node.attribute:
        if item.name in unread and item.ref_attr_name:
            return True  # what a call gives for it
        if item.name in unread:
            value, taken = helper.get_attribute_value(item), unread[item.name]
            # Of two directions the functions are listed one after the other.
            if value != taken and not (taken and value == 2 * taken):
                return True
    return False
