"""All names, operators, attributes and element types of a model as columns, from one parse that visits no node."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from onnx import GraphProto, NodeProto

__all__ = ["Columns", "NodeColumns", "graph_of", "message_class"]

_MESSAGES: Mapping[str, Mapping[int, str]] = {
    "Model": {7: "Graph", 20: "data", 25: "Function", 26: "data"},
    "Graph": {1: "Node", 5: "Tensor", 11: "Value", 12: "Value", 13: "Value", 14: "data", 15: "Sparse"},
    "Function": {4: "name", 5: "name", 7: "Node"},
    "Node": {1: "name", 2: "name", 3: "name", 4: "operator", 5: "Attribute", 7: "domain", 8: "overload"},
    "Attribute": {1: "attribute", 5: "Held", 6: "Graph", 10: "Held", 11: "Graph", 14: "Type", 15: "Type", 22: "Sparse"},
    "Held": {2: "element type", 9: "data"},
    "Sparse": {1: "Tensor"},
    "Tensor": {2: "element type", 8: "name", 9: "data"},
    "Value": {1: "name", 2: "Type"},
    "Type": {1: "TensorType", 4: "TypeOfItems", 9: "TypeOfItems"},
    "TypeOfItems": {1: "Type"},
    "TensorType": {1: "element type"},
    "ModelOfNodes": {7: "GraphOfNodes"},
    "GraphOfNodes": {1: "node", 5: "data", 13: "data"},
    "NodeInParts": {1: "input", 2: "output", 3: "data", 6: "data", 9: "metadata"},
}
"""The fields of onnx.proto, by number, that hold such a text or number, or a message that contains some.

All nodes of a graph are read as one, since protobuf merges repetitions of a field that is declared as a single message.
The data of tensors is declared so that only the last one is kept: protobuf would keep all undeclared fields. In the
last three messages, nodes are bytes or a single one.
"""


class NodeColumns(NamedTuple):
    """The nodes of one graph: each as bytes, their operators in order, all that they read, and other domains."""

    data: Sequence[bytes]
    operators: Sequence[bytes]
    reads: Sequence[bytes]
    domains: Sequence[bytes]

    @classmethod
    def of(cls, nodes: Sequence[NodeProto]) -> NodeColumns:
        """The columns of some nodes."""
        data = GraphProto(node=nodes).SerializeToString()
        return cls._of(message_class("GraphOfNodes").FromString(data), message_class("Graph").FromString(data))

    @classmethod
    def _of(cls, nodes: Any, merged: Any) -> NodeColumns:
        all_as_one = merged.field_1
        return cls(nodes.field_1[:], all_as_one.field_4[:], all_as_one.field_1[:], all_as_one.field_7[:])


class Columns:
    """Names, operators, names of attributes and element types, in inner graphs and functions too.

    Attributes:
        model: the serialized model.
        operators: the operators of all nodes, of any domain.
        domains: the domains of all nodes that state one.
        attributes: the names of all attributes.
        element_types: the element types of all tensors, and of all types that are stated.
        fields: the fields in `_MESSAGES` that the model has: message and number.
    """

    def __init__(self, model: bytes) -> None:
        """Take a serialized model."""
        self.model = model
        self._model = message_class("Model").FromString(model)
        self._names: list[Sequence[bytes]] = []
        found: dict[str, set[Any]] = {"operator": set(), "domain": set(), "attribute": set(), "element type": set()}
        fields, pending = set(), [self._model]
        for message in pending:  # grows while it is iterated
            name = message.DESCRIPTOR.name
            for field, value in message.ListFields():
                kind = _MESSAGES[name][field.number]
                fields.add((name, field.number))
                if field.message_type is not None:
                    pending.append(value)
                elif kind == "name":
                    self._names.append(value)
                elif kind in found:
                    found[kind].update(value[:])  # a list takes half the time
        self.operators = frozenset(map(bytes.decode, found["operator"]))
        self.domains = frozenset(map(bytes.decode, found["domain"]))
        self.attributes = frozenset(map(bytes.decode, found["attribute"]))
        self.element_types: Collection[int] = found["element type"]
        self.fields: Collection[tuple[str, int]] = fields

    def names(self) -> set[bytes]:
        """All names of nodes and values, in a set that the caller may add to."""
        names = set[bytes]()
        for each in self._names:
            names.update(each[:])
        return names

    @cached_property
    def main_nodes(self) -> NodeColumns:
        """The nodes of the main graph."""
        return NodeColumns._of(message_class("ModelOfNodes").FromString(self.model).field_7, self._model.field_7)


def graph_of(nodes: Iterable[NodeProto | bytes]) -> bytes:
    """Nodes, as messages or serialized, as those of a serialized GraphProto."""
    data = [node if isinstance(node, bytes) else node.SerializeToString() for node in nodes]
    return message_class("GraphOfNodes")(field_1=data).SerializeToString()  # type: ignore[no-any-return]


@cache
def message_class(name: str) -> Any:
    """The class of messages of a name, with the fields ``field_1`` and so on; others stay as bytes at their end."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="columns.proto", package="reducelower", syntax="proto2")
    for message, fields in _MESSAGES.items():
        made = file.message_type.add(name=message)
        for number, content in fields.items():
            kind = kinds.TYPE_INT32 if content == "element type" else kinds.TYPE_BYTES
            field = made.field.add(name=f"field_{number}", number=number, type=kind)
            field.label = kinds.LABEL_OPTIONAL if content in _MESSAGES or content == "data" else kinds.LABEL_REPEATED
            if content in _MESSAGES:
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".reducelower.{content}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"reducelower.{name}"))
