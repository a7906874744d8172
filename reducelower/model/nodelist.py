"""The nodes of one graph or function body while it is edited, as messages or as bytes.

Most nodes of a large model are touched by no rule. As bytes they are never parsed and never written again: one is
parsed when a rule asks for it, and what comes of it takes its place as bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, count
from typing import Any, TypeAlias

import numpy as np
from onnx import NodeProto

from reducelower.model.census import NAME, OUTPUT, Census, Columns, field_head, graph_from, graph_of, inputs_of
from reducelower.model.schemas import DEFAULT_DOMAINS, latest_opset, schema

__all__ = ["NodeList", "ParsedNodes", "Replacement", "SerializedNodes", "count_of", "nodes_of"]


_MARK = bytes(range(255, 207, -1))
"""Marks where nodes are replaced. No beginning of it is an end of it, so that marks do not overlap; of this length they
are found soonest."""


_OP_TYPE = b"\x22"
"""What stands in front of the operator of a node."""

Replacement: TypeAlias = "Sequence[NodeProto] | bytes"
"""Nodes that come in the place of another: messages, or the bytes of a GraphProto that holds nothing else."""


def nodes_of(replacement: Replacement) -> Sequence[NodeProto]:
    """The nodes of a replacement; those that are bytes as copies, which it is of no use to edit."""
    if not isinstance(replacement, bytes):
        return replacement
    return [NodeProto.FromString(data) for data in graph_from(replacement).node]


def count_of(replacement: Replacement) -> int:
    """How many nodes a replacement has."""
    return len(graph_from(replacement).node if isinstance(replacement, bytes) else replacement)


def _yields_one(op_type: str) -> bool:
    found = schema(op_type, latest_opset())
    return found is not None and found.max_output == 1


def _only_output(data: bytes) -> tuple[bytes, bytes]:
    """The output of a serialized node without inputs, and what follows it and the node's name; empty for others.

    Neither name may be longer than 127 bytes.
    """
    try:
        output_end = end = data[1] + 2
        length = data[1] or 128
        if data[end] == NAME:
            length |= data[end + 1]
            end += 2 + data[end + 1]
    except IndexError:
        return b"", b""
    is_such = data[0] == OUTPUT and length < 128 and data[end : end + 1] == _OP_TYPE
    return (data[2:output_end], data[end:]) if is_such else (b"", b"")


def _is_constant(node: NodeProto) -> bool:
    return node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS and bool(node.output and node.output[0])


def _serialized(replacement: Replacement) -> bytes:
    if isinstance(replacement, bytes):
        return replacement
    return b"".join([field_head(len(data)) + data for data in (node.SerializeToString() for node in replacement)])


class ParsedNodes:
    """The nodes of a message."""

    def __init__(self, nodes: Any) -> None:
        """Take the field ``node`` of a GraphProto or FunctionProto, to be edited where it stands."""
        self._nodes = nodes

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[NodeProto]:
        return iter(self._nodes)

    def __getitem__(self, index: int) -> NodeProto:
        return self._nodes[index]  # type: ignore[no-any-return]

    def original(self, index: int) -> bytes:
        """The bytes of a node that nobody has edited yet."""
        return self._nodes[index].SerializeToString()  # type: ignore[no-any-return]

    def overwrite(self, index: int, data: bytes) -> None:
        """Let other bytes be the node at a position."""
        self._nodes[index].ParseFromString(data)

    def name(self, index: int) -> str:
        """The name of a node."""
        return self._nodes[index].name  # type: ignore[no-any-return]

    def operators(self) -> Collection[str]:
        """The operator types there are."""
        return {node.op_type for node in self._nodes}

    def positions(self, is_wanted: Callable[[str], bool]) -> Iterable[int]:
        """Positions of all nodes: asking each for its operator takes as long as looking at it."""
        return range(len(self._nodes))

    def constants(self) -> Iterator[tuple[int, str, NodeProto]]:
        """The Constant nodes that yield something, each with its position and the name of what it yields."""
        return ((index, node.output[0], node) for index, node in enumerate(self._nodes) if _is_constant(node))

    def of(self, is_wanted: Callable[[str], bool]) -> Iterator[tuple[int, NodeProto]]:
        """The nodes of some operators as they are now, each with its position."""
        return ((index, node) for index, node in enumerate(self._nodes) if is_wanted(node.op_type))

    def mentioning(self, name: str) -> Iterator[NodeProto]:
        """All nodes: finding out which bear a name takes as long as looking at them."""
        return iter(self._nodes)

    def read(self, replaced: Mapping[int, Replacement]) -> Iterator[str]:
        """What nodes at other positions and replacements that are bytes read; not what graphs inside nodes do."""
        for index, node in enumerate(self._nodes):
            if index not in replaced:
                yield from node.input[:]  # a list of its names takes half as long
        for replacement in replaced.values():
            if isinstance(replacement, bytes):
                yield from (name for node in nodes_of(replacement) for name in node.input)

    def reading(self, names: Collection[str]) -> set[str]:
        """Which of some names nodes read; not what graphs inside nodes do."""
        wanted = set(names)
        return {name for node in self._nodes for name in node.input if name in wanted}

    def splice(self, replaced: Mapping[int, Replacement]) -> None:
        """Put nodes in the place of others, by position; those at -1 come first."""
        if not replaced:
            return
        nodes = self._nodes
        count = len(nodes)
        # Sorting moves pointers, not messages: new nodes are appended, then every node is given its place.
        places = [index << 20 for index in range(count)]
        removed = 0
        for index, replacement in replaced.items():
            source = nodes[index] if index >= 0 else None
            kept = False
            for number, node in enumerate(nodes_of(replacement)):
                if node is source:
                    places[index] = (index << 20) + number
                    kept = True
                else:
                    nodes.add().CopyFrom(node)
                    places.append((index << 20) + number)
            if source is not None and not kept:
                places[index] = count << 20
                removed += 1
        held = list(nodes)  # a node is the same object as long as somebody holds it
        place_of = dict(zip(map(id, held), places, strict=True))
        nodes.sort(key=lambda node: place_of[id(node)])
        if removed:
            del nodes[len(nodes) - removed :]


class SerializedNodes:
    """The nodes of the main graph of a model that is at hand as bytes."""

    def __init__(self, census: Census) -> None:
        """Take over the nodes of a census."""
        self._graph = census.graph
        self._pieces: list[bytes] | None = None  # of its bytes, where the graph is not up to date
        self._census = census
        self._overwritten: dict[int, bytes] = {}
        self._parsed: dict[int, NodeProto] = {}
        self._parsed_sources: dict[int, NodeProto] = {}
        self._edited: set[int] = set()
        self._is_spliced = False
        # What is done to nodes by the thousand goes through these two.
        self.original: Callable[[int], bytes] = self._graph.node.__getitem__
        self.overwrite: Callable[[int, bytes], None] = self._overwritten.__setitem__

    def __len__(self) -> int:
        return len(self._graph.node)

    def __iter__(self) -> Iterator[NodeProto]:
        self._settle()
        return map(NodeProto.FromString, self._graph.node)

    def __getitem__(self, index: int) -> NodeProto:
        if index not in self._parsed:
            data = self._overwritten[index] if index in self._overwritten else self.original(index)
            self._parsed[index] = NodeProto.FromString(data)
        return self._parsed[index]

    def name(self, index: int) -> str:
        """The name of a node."""
        known = self._parsed.get(index)
        return (NodeProto.FromString(self.original(index)) if known is None else known).name

    def operators(self) -> Collection[str]:
        """The operator types there were before any node was edited."""
        return self._census.operators

    def positions(self, is_wanted: Callable[[str], bool]) -> Iterable[int]:
        """Positions of the nodes of some operators; of all nodes where operators do not tell what nodes are."""
        return self._census.positions(is_wanted) if self._census.is_plain else range(len(self))

    def constants(self) -> Iterator[tuple[int, str, NodeProto]]:
        """The Constant nodes that yield something, each with its position and the name of what it yields.

        To be read before any node is edited; of those that hold the same value one stands for all.
        """
        alike: dict[bytes, NodeProto] = {}
        for index in self.positions("Constant".__eq__):
            data = self.original(index)
            if b"Constant" not in data:
                continue
            name, rest = _only_output(data)
            node = alike.get(rest) if name else None
            if node is None:
                node = NodeProto.FromString(data)
                if not _is_constant(node):
                    continue
                if name:
                    alike[rest] = node
            yield index, name.decode() or node.output[0], node

    def position(self, name: str) -> int | None:
        """Where the node stands that yields a value; None where none does."""
        place = self._places.get(name.encode())
        if place is None or not name:
            return None
        index = bisect_right(self._ends, place)
        if index < len(self._sources) and name in self.source(index).output:
            return index
        return self._positions.get(name)

    @cached_property
    def _ends(self) -> Sequence[int]:
        """Of each node, how many values it and those before it yield; right where nodes yield what their schemas say.

        To look at every node would take several times as long.
        """
        each = np.ones(len(self._sources), np.int64)
        for index in self._census.positions(lambda op_type: not _yields_one(op_type)):
            each[index] = len(self.source(index).output)
        ends: list[int] = each.cumsum().tolist()
        return ends

    def source(self, index: int) -> NodeProto:
        """The node at a position as it was, whatever has become of it."""
        if index not in self._parsed_sources:
            self._parsed_sources[index] = NodeProto.FromString(self._sources[index])
        return self._parsed_sources[index]

    @cached_property
    def _sources(self) -> Sequence[bytes]:
        return self._census.nodes

    @cached_property
    def _places(self) -> Mapping[bytes, int]:
        """Where a value stands among what all nodes yield."""
        return dict(zip(self._census.outputs, count()))

    @cached_property
    def _positions(self) -> Mapping[str, int]:
        nodes = enumerate(map(NodeProto.FromString, self._sources))
        return {name: index for index, node in nodes for name in node.output if name}

    def of(self, is_wanted: Callable[[str], bool]) -> Iterator[tuple[int, NodeProto]]:
        """The nodes of some operators as they are now, each with its position."""
        self._settle()
        if self._is_spliced:
            positions = Columns(self._graph.SerializeToString(), len(self)).positions(is_wanted)
        else:
            # Whatever was not edited is of the operator it was.
            positions = self._census.positions(is_wanted)
            if self._edited:
                positions = sorted(self._edited.union(positions))
        for index in positions:
            node = NodeProto.FromString(self._graph.node[index])
            if is_wanted(node.op_type):
                yield index, node

    def mentioning(self, name: str) -> Iterator[NodeProto]:
        """The nodes in which a name stands, as they are now, and maybe others."""
        self._settle()
        coded = name.encode()
        return (NodeProto.FromString(data) for data in self._graph.node if coded in data)

    def read(self, replaced: Mapping[int, Replacement]) -> Iterator[str]:
        """What nodes at other positions and replacements that are bytes read; not what graphs inside nodes do."""
        self._settle()
        kept = graph_of(data for index, data in enumerate(self._graph.node) if index not in replaced)
        made = [nodes for nodes in replaced.values() if isinstance(nodes, bytes)]
        return map(bytes.decode, inputs_of(b"".join([kept.SerializeToString(), *made])))

    def reading(self, names: Collection[str]) -> set[str]:
        """Which of some names nodes read; not what graphs inside nodes do."""
        self._settle()
        read = inputs_of(self._graph.SerializeToString())
        return set(map(bytes.decode, {name.encode() for name in names}.intersection(read)))

    def splice(self, replaced: Mapping[int, Replacement]) -> None:
        """Put nodes in the place of others, by position; those at -1 come first."""
        self._settle()
        self._parsed.clear()
        self._is_spliced = True
        if replaced:
            positions = sorted(replaced)
            made = list(map(_serialized, map(replaced.__getitem__, positions)))
            first = [made.pop(0)] if positions[0] < 0 else []
            pieces = self._split(positions[len(first) :])
            self._pieces = [*first, *chain.from_iterable(zip(pieces, made, strict=False)), pieces[-1]]

    def _split(self, positions: Sequence[int]) -> list[bytes]:
        """The bytes of the graph before, between and after nodes at some positions, which are lost."""
        nodes, mark = self._graph.node, _MARK
        while True:
            for index in positions:
                nodes[index] = mark
            pieces: list[bytes] = self._graph.SerializeToString().split(field_head(len(mark)) + mark)
            if len(pieces) == len(positions) + 1:
                return pieces
            mark += _MARK  # it stands in a node as well

    def pieces(self) -> list[bytes]:
        """The bytes of a GraphProto that holds the nodes and nothing else, in pieces; after they were spliced."""
        return [self._graph.SerializeToString()] if self._pieces is None else self._pieces

    def _settle(self) -> None:
        """Bring the graph up to date with what was edited."""
        if self._pieces is not None:
            self._graph, self._pieces = graph_from(b"".join(self._pieces)), None
        nodes = self._graph.node
        self._edited.update(self._overwritten, self._parsed)
        for index, data in self._overwritten.items():
            nodes[index] = data
        self._overwritten.clear()
        for index, node in self._parsed.items():
            nodes[index] = node.SerializeToString()


NodeList: TypeAlias = "ParsedNodes | SerializedNodes"
"""Nodes in order, in either form. Until they are spliced each keeps its position, whatever becomes of it.

As a sequence they are the nodes as they are now: those one iterates over are to be read, one asked for by its position
may be edited as well.
"""
