"""Fresh names of values and nodes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from reducelower.model.document import Document

__all__ = ["Names"]


class Names:
    """Gives out names that occur nowhere in the model and were not given out before."""

    def __init__(self, model: Document) -> None:
        """Take the model, which is not looked at yet."""
        self._model = model
        self._taken: set[bytes] | None = None
        self._last: dict[str, int] = {}

    def fresh(self, stem: str, tail: str) -> str:
        """A fresh name made of a stem, such as a node name, and a tail, such as ``/ReduceL2/square``."""
        if self._taken is None:
            self._taken = set()
            _add_names(self._taken, _class("Model").FromString(self._model.with_all_names()))
        taken, name = self._taken, stem + tail
        coded = name.encode()
        if coded in taken:
            # Names are never released, so a candidate that was taken once need not be tried again.
            number = self._last.get(name, 1) + 1
            while (coded := f"{name}_{number}".encode()) in taken:
                number += 1
            self._last[name] = number
            name = f"{name}_{number}"
        taken.add(coded)
        return name


_MESSAGES: Mapping[str, Mapping[int, str]] = {
    "Model": {7: "Graph", 25: "Function"},
    "Graph": {1: "Node", 5: "Tensor", 11: "Value", 12: "Value", 13: "Value", 15: "Sparse"},
    "Function": {4: "", 5: "", 7: "Node"},
    "Node": {1: "", 2: "", 3: "", 5: "Attribute"},
    "Attribute": {6: "Graph", 11: "Graph"},
    "Sparse": {1: "Tensor"},
    "Tensor": {8: "", 9: "the last"},
    "Value": {1: ""},
}
"""The fields of onnx.proto that have names or lead to some: by their number, what messages they hold; empty for a name.

All of a message's nodes are read as one, since protobuf puts together what repeats a field that holds one message. So
the names of a large model are a few columns, where looking at each node takes many times as long. Of the data of
tensors one is kept at a time: what is not known is kept altogether.
"""


@cache
def _class(name: str) -> Any:
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="names.proto", package="reducelower", syntax="proto2")
    for message, fields in _MESSAGES.items():
        made = file.message_type.add(name=message)
        for number, held in fields.items():
            field = made.field.add(name=f"field_{number}", number=number, type=kinds.TYPE_BYTES)
            field.label = kinds.LABEL_OPTIONAL if held else kinds.LABEL_REPEATED
            if held in _MESSAGES:
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".reducelower.{held}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"reducelower.{name}"))


def _add_names(found: set[bytes], message: Any) -> None:
    for field, value in message.ListFields():
        if field.message_type is not None:
            _add_names(found, value)
        elif field.is_repeated:
            found.update(value[:])  # a list takes half the time
