"""What the nodes of a graph are, and what types it states, read straight from its bytes.

Asking 50,000 node messages for their operator types one by one takes longer than parsing the whole model. So the bytes
are parsed with message types that have the field numbers of onnx.proto but not its depth. One leaves every node as the
bytes it is. The others take all nodes of the graph as one and give columns: protobuf merges repeated occurrences of a
singular message, and repeated fields inside it line up one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from itertools import islice
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from numpy.typing import NDArray

from reducelower.model.numbering import numbered
from reducelower.model.wire import LENGTH, Field, MalformedError, Window, varint

__all__ = [
    "INPUT",
    "NAME",
    "OUTPUT",
    "Census",
    "Columns",
    "Stated",
    "field_head",
    "graph_field",
    "graph_from",
    "graph_head",
    "graph_of",
    "inputs_of",
    "leading_nodes",
]

_Field = descriptor_pb2.FieldDescriptorProto

INPUT, OUTPUT, NAME = 0x0A, 0x12, 0x1A
"""What stands in front of the first fields of a NodeProto, as protobuf writes it."""

_MANY = 2048
"""Nodes from which on it pays to number the operator types of all of them at once."""

_GRAPH, _NODE, _OP_TYPE = 7, 1, 4

_LAST_OF_VARINT, _LONGEST_VARINT = 127, 63
"""The largest byte that ends an integer of variable length, and how many bits stand before the last byte at most."""

_BEFORE_GRAPH = 64
"""Fields of a model among which its graph is looked for; protobuf writes six before it at most."""

# Field numbers of NodeProto in onnx.proto.
_COLUMNS: Mapping[str, Mapping[str, int]] = {
    "Nodes": {"op_type": _OP_TYPE, "domain": 7, "overload": 8, "metadata_props": 9},
    "Readers": {"input": 1},
    "Yielders": {"output": 2},
}

_OTHER = "other_"
_OTHERS = (1, 2, 3, 5, 6)
"""The other fields that nodes often have. Declared as singular they overwrite each other, which takes less time than
to keep all of them, as happens to fields that are not known."""


@cache
def _class(name: str) -> Any:
    """A message type: ``Apart`` for a model; ``ApartGraph``, and one for every group of columns, for a graph."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"reducelower.{name}"))


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    file = descriptor_pb2.FileDescriptorProto(name="census.proto", package="reducelower", syntax="proto2")
    for kind, columns in _COLUMNS.items():
        message = file.message_type.add(name=f"Columns{kind}")
        for column, number in columns.items():
            message.field.add(name=column, number=number, label=_Field.LABEL_REPEATED, type=_Field.TYPE_BYTES)
        for number in _OTHERS:
            if number not in columns.values():
                other = f"{_OTHER}{number}"
                message.field.add(name=other, number=number, label=_Field.LABEL_OPTIONAL, type=_Field.TYPE_BYTES)
        _add_singular(file, f"{kind}Graph", "node", 1, message.name)
    apart = file.message_type.add(name="ApartGraph")
    apart.field.add(name="node", number=_NODE, label=_Field.LABEL_REPEATED, type=_Field.TYPE_BYTES)
    _add_singular(file, "Apart", "graph", _GRAPH, "ApartGraph")
    _add_singular(file, "StatedModel", "graph", _GRAPH, "StatedGraph")
    _add_singular(file, "StatedGraph", "value_info", 13, "StatedValues")
    _add_singular(file, "StatedValues", "type", 2, "StatedTypes").add(
        name="name", number=1, label=_Field.LABEL_REPEATED, type=_Field.TYPE_BYTES
    )
    _add_singular(file, "StatedTypes", "tensor_type", 1, "StatedTensors")
    tensors = file.message_type.add(name="StatedTensors").field
    tensors.add(name="elem_type", number=1, label=_Field.LABEL_REPEATED, type=_Field.TYPE_INT32)
    tensors.add(name="shape", number=2, label=_Field.LABEL_OPTIONAL, type=_Field.TYPE_BYTES)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


def _add_singular(file: Any, message: str, field: str, number: int, kind: str) -> Any:
    """Add a message type with one field, and return the fields."""
    fields = file.message_type.add(name=message).field
    fields.add(
        name=field,
        number=number,
        label=_Field.LABEL_OPTIONAL,
        type=_Field.TYPE_MESSAGE,
        type_name=f".reducelower.{kind}",
    )
    return fields


def graph_of(nodes: Iterable[bytes]) -> Any:
    """A graph that holds serialized nodes, in its field ``node``, and nothing else."""
    graph = _class("ApartGraph")()
    graph.node.extend(nodes)
    return graph


def graph_from(serialized: bytes) -> Any:
    """A graph from its bytes, nodes left as they are, in its field ``node``."""
    return _class("ApartGraph").FromString(serialized)


@cache
def field_head(length: int) -> bytes:
    """What stands in front of a node of so many bytes in a GraphProto: field 1, and the length."""
    return b"\x0a" + varint(length)


def graph_head(length: int) -> bytes:
    """What stands in front of a graph of so many bytes in a ModelProto."""
    return varint(_GRAPH << 3 | LENGTH) + varint(length)


def graph_field(model: bytes) -> Field | None:
    """Where the graph lies in a serialized model; None where it does not come early, or not as protobuf writes it."""
    fields = islice(Window(model).fields(0, len(model)), _BEFORE_GRAPH)
    try:
        return next((field for field in fields if (field.number, field.kind) == (_GRAPH, LENGTH)), None)
    except MalformedError:  # protobuf reads more than the window does
        return None


def _numbered_one_by_one(column: Sequence[bytes]) -> tuple[list[bytes], NDArray[np.int32]]:
    """What `numbered` gives, for whatever strings."""
    codes: dict[bytes, int] = {}
    stated = np.fromiter((codes.setdefault(name, len(codes)) for name in column), np.int32, len(column))
    return list(codes), stated


class Columns:
    """What the nodes of a graph are, column by column, from the bytes of a graph that holds them and nothing else."""

    def __init__(self, serialized: bytes, count: int) -> None:
        """Look at so many nodes, as bytes of a graph that holds nothing else."""
        self.serialized = serialized
        self._count = count

    @cached_property
    def _columns(self) -> Any:
        columns = _class("NodesGraph").FromString(self.serialized).node
        for number in _OTHERS:
            columns.ClearField(f"{_OTHER}{number}")
        return columns

    @cached_property
    def operator_of_each(self) -> tuple[list[str], NDArray[np.int32]]:
        """The operator types there are, and for each node that states one its place among them."""
        column = self._columns.op_type
        found = None
        if len(column) >= _MANY:
            found = numbered(self._columns.SerializeToString(), _OP_TYPE << 3 | LENGTH, len(column))
        names, stated = found or _numbered_one_by_one(column)
        return [name.decode() for name in names], stated

    @cached_property
    def is_even(self) -> bool:
        """Whether every node has one operator type, so that the n-th is that of the n-th node."""
        return len(self._columns.op_type) == self._count

    @cached_property
    def is_plain(self) -> bool:
        """Whether no node states a domain either, so that operator types tell what nodes are."""
        return self.is_even and not any(self._columns.domain)

    @property
    def operators(self) -> Sequence[str]:
        """The operator types there are."""
        return self.operator_of_each[0]

    def positions(self, is_wanted: Callable[[str], bool]) -> list[int]:
        """Positions of the nodes of some operators; of all nodes where the columns are not even."""
        if not self.is_even:
            return list(range(self._count))
        operators, codes = self.operator_of_each
        wanted = np.fromiter(map(is_wanted, operators), np.bool_, len(operators))
        found: list[int] = np.flatnonzero(wanted[codes]).tolist()
        return found

    @property
    def has_overloads(self) -> bool:
        """Whether any node names an overload of a function."""
        return any(self._columns.overload)

    @cached_property
    def inputs(self) -> Sequence[bytes]:
        """The inputs of all nodes, in order; what graphs inside them read is not among them."""
        return inputs_of(self.serialized)

    @cached_property
    def outputs(self) -> Sequence[bytes]:
        """The outputs of all nodes, in order; one that is left out is empty."""
        return _class("YieldersGraph").FromString(self.serialized).node.output  # type: ignore[no-any-return]


def inputs_of(nodes: bytes) -> Sequence[bytes]:
    """As `Columns.inputs`, of nodes as bytes of a graph that holds nothing else."""
    return _class("ReadersGraph").FromString(nodes).node.input  # type: ignore[no-any-return]


class Census(Columns):
    """The nodes of the main graph of a model; those of subgraphs and functions are not in it.

    The graph is the bytes of one that holds nothing but the nodes; whoever edits the nodes edits this one.
    """

    def __init__(self, serialized: bytes, graph: Any = None) -> None:
        """Take the census of nodes, as bytes of a graph that holds nothing else; that graph may be at hand."""
        self.graph = graph_from(serialized) if graph is None else graph
        super().__init__(serialized, len(self.graph.node))

    @classmethod
    def of_model(cls, serialized: bytes) -> Census:
        """Take the census of a serialized ModelProto.

        Raises:
            google.protobuf.message.DecodeError: the bytes are no message.
        """
        graph = _class("Apart").FromString(serialized).graph
        graph.DiscardUnknownFields()
        return cls(graph.SerializeToString(), graph)

    def without_nodes(self, model: bytes) -> bytes:
        """The bytes of the model that the census was taken of, without its nodes."""
        if first := _without_first(self.serialized, model):
            return first
        without = _class("Apart").FromString(model)
        if without.HasField("graph"):
            without.graph.ClearField("node")
        return without.SerializeToString()  # type: ignore[no-any-return]

    @cached_property
    def nodes(self) -> Sequence[bytes]:
        """The serialized nodes as they were, whatever has become of them."""
        return graph_from(self.serialized).node  # type: ignore[no-any-return]


class Stated:
    """What the main graph of a model states in value_info, of as many values as it may have nodes."""

    def __init__(self, model: bytes) -> None:
        """Look at a serialized ModelProto, whose nodes are not needed."""
        self._model = model
        self._added: list[bytes] = []

    def add(self, stated: bytes) -> None:
        """Take in what was added to the graph, as bytes of a GraphProto."""
        self._added.append(stated)

    @cached_property
    def _values(self) -> Any:
        return _class("StatedModel").FromString(self._model).graph.value_info

    @property
    def names(self) -> Sequence[bytes]:
        """The names of the values as the model was, in order; one that has none is missing."""
        return self._values.name  # type: ignore[no-any-return]

    @property
    def element_types(self) -> frozenset[int] | None:
        """The element types there were or are; None where a value is something else than a tensor of a stated type."""
        added = _class("StatedGraph").FromString(b"".join(self._added)).value_info
        own, more = self._element_types, _element_types(added)
        return None if own is None or more is None else own | more

    @cached_property
    def _element_types(self) -> frozenset[int] | None:
        return _element_types(self._values)


def _element_types(values: Any) -> frozenset[int] | None:
    column = values.type.tensor_type.elem_type
    found = frozenset(column)
    return found if len(column) == len(values.name) and 0 not in found else None


def leading_nodes(model: bytes, most: int) -> bytes | None:
    """The nodes a serialized model's graph begins with, as bytes of a graph of nothing else, without parsing the model.

    None where these are more than `most`, or the graph does not come early.
    """
    graph = graph_field(model)
    if graph is None:
        return None
    head, position, count = field_head(0)[0], graph.value, 0
    try:
        # What `Window.fields` does, for fields of one kind, in a tenth of the time.
        while position < graph.end and model[position] == head:
            length = shift = 0
            while (byte := model[position := position + 1]) > _LAST_OF_VARINT and shift < _LONGEST_VARINT:
                length |= (byte & _LAST_OF_VARINT) << shift
                shift += 7
            position += 1 + (length | byte << shift)
            count += 1
            if count > most:
                return None
    except IndexError:
        return None
    return model[graph.value : position] if position <= graph.end else None


def _without_first(nodes: bytes, model: bytes) -> bytes:
    """A model without its nodes, where they come first in its graph, as protobuf writes them; else nothing."""
    graph = graph_field(model)
    if graph is None or graph.value + len(nodes) > graph.end or not model.startswith(nodes, graph.value):
        return b""
    head = graph_head(graph.end - graph.value - len(nodes))
    return b"".join((model[: graph.start], head, model[graph.value + len(nodes) :]))
