"""All names, operators and attributes of a model as columns, from one parse of its bytes that visits no node."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

__all__ = ["Columns", "MainNodes", "message_class"]

_MESSAGES: Mapping[str, Mapping[int, str]] = {
    "Model": {7: "Graph", 25: "Function"},
    "Graph": {1: "Node", 5: "Tensor", 11: "Value", 12: "Value", 13: "Value", 15: "Sparse"},
    "Function": {4: "name", 5: "name", 7: "Node"},
    "Node": {1: "name", 2: "name", 3: "name", 4: "operator", 5: "Attribute", 7: "domain"},
    "Attribute": {1: "attribute", 6: "Graph", 11: "Graph"},
    "Sparse": {1: "Tensor"},
    "Tensor": {8: "name", 9: "data"},
    "Value": {1: "name"},
    "ModelOfNodes": {7: "GraphOfNodes"},
    "GraphOfNodes": {1: "node", 5: "data", 13: "data"},
    "NodeInParts": {1: "input", 2: "output", 3: "data", 6: "data", 9: "metadata"},
}
"""The fields of onnx.proto, by number, that hold such a text, or a message that contains some.

All nodes of a graph are read as one, since protobuf merges repetitions of a field that is declared as a single message.
The data of tensors is declared so that only the last one is kept: protobuf would keep all undeclared fields. In the
last three messages, nodes are bytes or a single one.
"""


class MainNodes(NamedTuple):
    """The nodes of the main graph: each as bytes, their operators in order, all that they read, and other domains."""

    data: Sequence[bytes]
    operators: Sequence[bytes]
    reads: Sequence[bytes]
    domains: Sequence[bytes]


class Columns:
    """Names, operators and names of attributes, in inner graphs and functions too."""

    def __init__(self, model: bytes) -> None:
        """Take a serialized model."""
        self._bytes = model
        self._model = message_class("Model").FromString(model)

    def names(self) -> set[bytes]:
        """All names of nodes and values, in a set that the caller may add to."""
        texts: dict[str, set[bytes]] = {"name": set()}
        _collect(texts, self._model)
        return texts["name"]

    @cached_property
    def kinds(self) -> Mapping[str, Collection[bytes]]:
        """All operators, and the names of all attributes."""
        texts: dict[str, set[bytes]] = {"operator": set(), "attribute": set()}
        _collect(texts, self._model)
        return texts

    @cached_property
    def main_nodes(self) -> MainNodes:
        """The nodes of the main graph."""
        nodes = self._model.field_7.field_1
        data = message_class("ModelOfNodes").FromString(self._bytes).field_7.field_1[:]
        return MainNodes(data, nodes.field_4[:], nodes.field_1[:], nodes.field_7[:])


def _collect(texts: Mapping[str, set[bytes]], message: Any) -> None:
    """Add the texts of some kinds in a message."""
    kinds = _MESSAGES[message.DESCRIPTOR.name]
    for field, value in message.ListFields():
        if field.message_type is not None:
            _collect(texts, value)
        elif kinds[field.number] in texts:
            texts[kinds[field.number]].update(value[:])  # a list takes half the time


@cache
def message_class(name: str) -> Any:
    """The class of messages of a name, with the fields ``field_1`` and so on; others stay as bytes at their end."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="columns.proto", package="reducelower", syntax="proto2")
    for message, fields in _MESSAGES.items():
        made = file.message_type.add(name=message)
        for number, content in fields.items():
            field = made.field.add(name=f"field_{number}", number=number, type=kinds.TYPE_BYTES)
            field.label = kinds.LABEL_OPTIONAL if content in _MESSAGES or content == "data" else kinds.LABEL_REPEATED
            if content in _MESSAGES:
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".reducelower.{content}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"reducelower.{name}"))
