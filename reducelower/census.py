"""What the nodes of a model's main graph are, column by column, read straight from its bytes.

Asking 50,000 node messages for their operator types one by one takes longer than parsing the whole model. So the bytes
are parsed once more with a message type that has the field numbers of onnx.proto but takes all nodes of the graph as
one: protobuf merges repeated occurrences of a singular message, and repeated fields inside it line up one by one.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

__all__ = ["Census"]

_Field = descriptor_pb2.FieldDescriptorProto


@cache
def _classes() -> tuple[Any, Any]:
    """Two message types for ModelProto.graph (7) and GraphProto.node (1): nodes in columns, and nodes as they are."""
    file = descriptor_pb2.FileDescriptorProto(name="census.proto", package="reducelower", syntax="proto2")
    columns = file.message_type.add(name="Nodes")
    for name, number in (("input", 1), ("op_type", 4), ("domain", 7), ("overload", 8), ("metadata_props", 9)):
        columns.field.add(name=name, number=number, label=_Field.LABEL_REPEATED, type=_Field.TYPE_BYTES)
    for message, field, number, kind in (("Graph", "node", 1, "Nodes"), ("Model", "graph", 7, "Graph")):
        file.message_type.add(name=message).field.add(
            name=field,
            number=number,
            label=_Field.LABEL_OPTIONAL,
            type=_Field.TYPE_MESSAGE,
            type_name=f".reducelower.{kind}",
        )
    file.message_type.add(name="Apart").field.add(
        name="node", number=1, label=_Field.LABEL_REPEATED, type=_Field.TYPE_BYTES
    )
    file.message_type.add(name="ModelApart").field.add(
        name="graph", number=7, label=_Field.LABEL_OPTIONAL, type=_Field.TYPE_MESSAGE, type_name=".reducelower.Apart"
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    columns_class, apart_class = (
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"reducelower.{name}"))
        for name in ("Model", "ModelApart")
    )
    return columns_class, apart_class


class Census:
    """Columns over the nodes of the main graph; subgraphs and functions are not in it."""

    def __init__(self, serialized: bytes) -> None:
        """Take the census of a serialized ModelProto."""
        self._serialized = serialized
        self._nodes = _classes()[0].FromString(serialized).graph.node
        self._apart: Any = None

    @property
    def operators(self) -> list[bytes]:
        """The operator types of all nodes, in order."""
        return self._nodes.op_type[:]  # type: ignore[no-any-return]

    def node(self, index: int) -> bytes:
        """A node in its serialized form."""
        if self._apart is None:
            self._apart = _classes()[1].FromString(self._serialized).graph.node
        return self._apart[index]  # type: ignore[no-any-return]

    @property
    def has_domains(self) -> bool:
        """Whether any node states a domain."""
        return any(self._nodes.domain)

    @property
    def has_overloads(self) -> bool:
        """Whether any node names an overload of a function."""
        return any(self._nodes.overload)

    @property
    def has_metadata(self) -> bool:
        """Whether any node carries metadata_props."""
        return bool(self._nodes.metadata_props)

    @property
    def inputs(self) -> list[bytes]:
        """The inputs of all nodes, in order."""
        return self._nodes.input[:]  # type: ignore[no-any-return]

    def uses(self, name: str) -> int:
        """How many inputs of nodes bear a name."""
        return self.inputs.count(name.encode())
