"""Operator types, inputs, outputs and stated types of a graph, read straight from its bytes.

Asking 50,000 node messages for their operator types takes longer than parsing the whole model. So the bytes are parsed
with other message types that have the field numbers of onnx.proto but less depth. One keeps every node as bytes. The
others treat all nodes as one message and give columns: protobuf merges repeated occurrences of a singular message, and
the repeated fields inside it are concatenated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, cached_property
from itertools import chain, islice
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from onnx import FunctionProto, GraphProto

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
]

_Field = descriptor_pb2.FieldDescriptorProto

INPUT, OUTPUT, NAME = 0x0A, 0x12, 0x1A
"""The tags of the first fields of NodeProto, as protobuf writes them."""

_GRAPH, _NODE, _OP_TYPE = 7, 1, 4

_BEFORE_GRAPH = 64
"""How many fields of a ModelProto are searched for the graph; protobuf writes at most six before it."""

# Field numbers of NodeProto in onnx.proto, per group of columns.
_COLUMNS: Mapping[str, Mapping[str, int]] = {
    "Nodes": {"op_type": _OP_TYPE, "domain": 7, "overload": 8, "metadata_props": 9},
    "Readers": {"input": 1},
    "Yielders": {"output": 2},
    "Named": {"name": 3},
}

_OTHER = "other_"
_OTHERS = (1, 2, 3, 5, 6)
"""Other common fields of NodeProto. They are declared as singular, so that each overwrites the one before. That is
faster than keeping all of them, which protobuf does with unknown fields."""


@cache
def _class(name: str) -> Any:
    """A message type: ``Apart`` for a model, ``ApartGraph`` for a graph, and one graph type per group of columns."""
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
    """Add a message type with one singular field, and return its fields."""
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
    """A graph message with serialized nodes in its field ``node`` and nothing else."""
    graph = _class("ApartGraph")()
    graph.node.extend(nodes)
    return graph


def graph_from(serialized: bytes) -> Any:
    """A graph message parsed from bytes, with its nodes left serialized in the field ``node``."""
    return _class("ApartGraph").FromString(serialized)


@cache
def field_head(length: int) -> bytes:
    """Tag and length that precede a node of `length` bytes in a GraphProto."""
    return b"\x0a" + varint(length)


def graph_head(length: int) -> bytes:
    """Tag and length that precede a graph of `length` bytes in a ModelProto."""
    return varint(_GRAPH << 3 | LENGTH) + varint(length)


def graph_field(model: bytes) -> Field | None:
    """Where the graph lies in a serialized model; None if it does not come early or is not written as protobuf does."""
    try:
        for field in islice(Window(model).fields(0, len(model)), _BEFORE_GRAPH):
            if (field.number, field.kind) == (_GRAPH, LENGTH):
                return field
    except MalformedError:  # protobuf accepts more than Window
        pass
    return None


class Columns:
    """The fields of all nodes, column by column, from the bytes of a graph that holds only nodes."""

    def __init__(self, serialized: bytes, count: int) -> None:
        """Take the bytes of a graph of `count` nodes and nothing else."""
        self.serialized = serialized
        self._count = count

    @cached_property
    def _columns(self) -> Any:
        columns = _class("NodesGraph").FromString(self.serialized).node
        for number in _OTHERS:
            columns.ClearField(f"{_OTHER}{number}")
        return columns

    @cached_property
    def _by_operator(self) -> Mapping[str, list[int]]:
        """The positions of the nodes of each operator type, where every node states one."""
        found: dict[bytes, list[int]] = {}
        for position, name in enumerate(self._columns.op_type):
            found.setdefault(name, []).append(position)
        return {name.decode(): positions for name, positions in found.items()}

    @cached_property
    def is_even(self) -> bool:
        """Whether every node has exactly one operator type, so that entry n belongs to node n."""
        return len(self._columns.op_type) == self._count

    @cached_property
    def is_plain(self) -> bool:
        """Whether also no node states a domain, so that the operator type alone identifies the operator."""
        return self.is_even and not any(self._columns.domain)

    @property
    def operators(self) -> Collection[str]:
        """The distinct operator types."""
        return self._by_operator.keys()

    def positions(self, is_wanted: Callable[[str], bool]) -> Sequence[int]:
        """Positions of the nodes whose operator is wanted, or of all nodes if the columns are not even."""
        if not self.is_even:
            return range(self._count)
        found = [positions for operator, positions in self._by_operator.items() if is_wanted(operator)]
        return found[0] if len(found) == 1 else sorted(chain.from_iterable(found))

    @property
    def has_overloads(self) -> bool:
        """Whether any node names an overload of a function."""
        return any(self._columns.overload)

    @cached_property
    def inputs(self) -> Sequence[bytes]:
        """The inputs of all nodes in order, without those of nodes in subgraphs."""
        return inputs_of(self.serialized)

    @property
    def names(self) -> Sequence[bytes]:
        """The names of all nodes that have one, in order."""
        return _class("NamedGraph").FromString(self.serialized).node.name  # type: ignore[no-any-return]

    @cached_property
    def outputs(self) -> Sequence[bytes]:
        """The outputs of all nodes in order; an omitted output is empty."""
        return _class("YieldersGraph").FromString(self.serialized).node.output  # type: ignore[no-any-return]


def inputs_of(nodes: bytes) -> Sequence[bytes]:
    """As `Columns.inputs`, for the bytes of a graph that holds only nodes."""
    return _class("ReadersGraph").FromString(nodes).node.input  # type: ignore[no-any-return]


class Census(Columns):
    """The nodes of a model's main graph, without those of subgraphs and functions.

    `graph` holds the serialized nodes only. Edit the nodes there.
    """

    def __init__(self, serialized: bytes, graph: Any = None) -> None:
        """Take the bytes of a graph that holds only nodes, and that graph if it has been parsed."""
        self.graph = graph_from(serialized) if graph is None else graph
        super().__init__(serialized, len(self.graph.node))

    @classmethod
    def of_model(cls, serialized: bytes) -> Census:
        """Take the census of a serialized ModelProto.

        Raises:
            google.protobuf.message.DecodeError: the bytes are not a message.
        """
        graph = _class("Apart").FromString(serialized).graph
        graph.DiscardUnknownFields()
        return cls(graph.SerializeToString(), graph)

    @classmethod
    def of_nodes(cls, holder: GraphProto | FunctionProto) -> Census:
        """Take the census of the nodes of a graph or function."""
        return cls(GraphProto(node=holder.node).SerializeToString())

    def without_nodes(self, model: bytes) -> bytes:
        """The bytes of the model that the census was taken of, without the nodes of its main graph."""
        without = _class("Apart").FromString(model)
        if without.HasField("graph"):
            without.graph.ClearField("node")
        return without.SerializeToString()  # type: ignore[no-any-return]

    @cached_property
    def nodes(self) -> Sequence[bytes]:
        """The serialized nodes before any edit."""
        return graph_from(self.serialized).node  # type: ignore[no-any-return]


class Stated:
    """The types that the value_info of the main graph states."""

    def __init__(self, model: bytes) -> None:
        """Take a serialized ModelProto; its nodes may be missing."""
        self._model = model
        self._added: list[bytes] = []

    def add(self, stated: bytes) -> None:
        """Add value_info, as bytes of a GraphProto."""
        self._added.append(stated)

    @cached_property
    def _values(self) -> Any:
        return _class("StatedModel").FromString(self._model).graph.value_info

    @property
    def names(self) -> Sequence[bytes]:
        """The names in the original value_info, in order; entries without a name are missing."""
        return self._values.name  # type: ignore[no-any-return]

    @property
    def element_types(self) -> frozenset[int] | None:
        """All element types, old and added; None if some value is not a tensor with a stated element type."""
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
