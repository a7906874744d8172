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
from typing import Any, TypeAlias

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from onnx import FunctionProto, GraphProto

from reducelower.model.constants import HELD_IN
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
    "types_of_constants",
]

_Field = descriptor_pb2.FieldDescriptorProto

INPUT, OUTPUT, NAME = 0x0A, 0x12, 0x1A
"""The tags of the first fields of NodeProto, as protobuf writes them."""

_GRAPH, _NODE, _OP_TYPE = 7, 1, 4

_BEFORE_GRAPH = 64
"""How many fields of a ModelProto are searched for the graph; protobuf writes at most six before it."""

_OTHERS = (1, 2, 3, 5, 6)
"""Other common fields of NodeProto. They are declared as singular, so that each overwrites the one before. That is
faster than keeping all of them, which protobuf does with unknown fields."""

_OTHER = "other_"

_Fields: TypeAlias = "Mapping[str, tuple[int, str]]"
"""Fields by name: the number in onnx.proto, and a kind of `_KINDS` or the message."""

_KINDS: Mapping[str, tuple[Any, Any]] = {
    "all": (_Field.LABEL_REPEATED, _Field.TYPE_BYTES),
    "all numbers": (_Field.LABEL_REPEATED, _Field.TYPE_INT32),
    "the last": (_Field.LABEL_OPTIONAL, _Field.TYPE_BYTES),
}


def _columns(**numbers: int) -> _Fields:
    """Some fields of NodeProto as columns."""
    others = {f"{_OTHER}{number}": (number, "the last") for number in _OTHERS if number not in numbers.values()}
    return {**{name: (number, "all") for name, number in numbers.items()}, **others}


_MESSAGES: Mapping[str, _Fields] = {
    "Apart": {"graph": (_GRAPH, "ApartGraph")},
    "ApartGraph": {"node": (_NODE, "all")},
    "NodesGraph": {"node": (_NODE, "Nodes")},
    "Nodes": _columns(op_type=_OP_TYPE, domain=7, overload=8, metadata_props=9),
    "ReadersGraph": {"node": (_NODE, "Readers")},
    "Readers": _columns(input=1),
    "YieldersGraph": {"node": (_NODE, "Yielders")},
    "Yielders": _columns(output=2),
    "NamedGraph": {"node": (_NODE, "Named")},
    "Named": _columns(name=3),
    "ConstantsGraph": {"node": (_NODE, "Constants")},
    "Constants": {"attribute": (5, "Held")},
    "Held": {"name": (1, "all"), "t": (5, "HeldTensors"), "sparse_tensor": (22, "HeldSparse")},
    "HeldSparse": {"values": (1, "HeldTensors")},
    "HeldTensors": {"data_type": (2, "all numbers"), "raw_data": (9, "the last")},
    "StatedModel": {"graph": (_GRAPH, "StatedGraph")},
    "StatedGraph": {"value_info": (13, "StatedValues")},
    "StatedValues": {"name": (1, "all"), "type": (2, "StatedTypes")},
    "StatedTypes": {"tensor_type": (1, "StatedTensors")},
    "StatedTensors": {"elem_type": (1, "all numbers"), "shape": (2, "the last")},
}
"""What bytes are parsed as: ``Apart`` for a model with its nodes left serialized, and one message per group of
columns."""


@cache
def _class(name: str) -> Any:
    """A message type of `_MESSAGES`."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"reducelower.{name}"))


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    file = descriptor_pb2.FileDescriptorProto(name="census.proto", package="reducelower", syntax="proto2")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            label, of_type = _KINDS.get(kind, (_Field.LABEL_OPTIONAL, _Field.TYPE_MESSAGE))
            of_message = None if kind in _KINDS else f".reducelower.{kind}"
            message.field.add(name=field, number=number, label=label, type=of_type, type_name=of_message)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


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


def types_of_constants(nodes: bytes) -> Collection[int]:
    """The element types of what Constant nodes hold, for the bytes of a graph that holds only such nodes."""
    held = _class("ConstantsGraph").FromString(nodes).node.attribute
    short = (HELD_IN[name][0] for name in map(bytes.decode, set(held.name)) if name in HELD_IN)
    return {*held.t.data_type, *held.sparse_tensor.values.data_type, *short}


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
