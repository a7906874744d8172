"""A case as text that can be read again: the model in ONNX text, its inputs as numpy expressions."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from google.protobuf.message import Message
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper, parser, printer

from tools.fuzz.case import Case

__all__ = ["shown"]


def shown(case: Case) -> str:
    """The case as text; if ONNX text cannot express the model, its bytes in base 64 follow."""
    lines = [case.name, model_text(case.model)]
    lines += [f"{name} = {_value(value)}" for name, value in case.feeds.items()]
    return "\n".join(lines)


def model_text(model: ModelProto) -> str:
    """The model in ONNX text, followed by its bytes if `onnx.parser` reads another model from the text."""
    text = str(printer.to_text(model))
    try:
        same = _normal(parser.parse_model(text)) == _normal(model)
    except Exception:  # the parser raises a kind of its own
        same = False
    if same:
        return text
    encoded = base64.b64encode(model.SerializeToString()).decode()
    return f"{text}\n# bytes, because the text leaves something out: {encoded}"


def _normal(model: ModelProto) -> bytes:
    """The model's bytes, with default domains empty and every tensor in the same encoding."""
    copy = ModelProto.FromString(model.SerializeToString())
    _make_normal(copy)
    return copy.SerializeToString(deterministic=True)


def _make_normal(message: Message) -> None:
    if isinstance(message, NodeProto) and not message.domain:
        message.ClearField("domain")
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for inner in [value] if isinstance(value, Message) else value:
            if isinstance(inner, TensorProto):
                inner.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(inner), inner.name))
            else:
                _make_normal(inner)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    array = np.asarray(value)
    shape = "" if array.ndim == 1 else f".reshape({array.shape})"
    return f"np.array({array.ravel().tolist()}, dtype={str(array.dtype)!r}){shape}"
