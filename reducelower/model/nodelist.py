"""The nodes of one graph or function body during editing.

Rules touch few nodes of a large model. The others stay bytes: they are neither parsed nor serialized.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, count
from typing import TypeAlias

import numpy as np
from onnx import FunctionProto, GraphProto, NodeProto

from reducelower.model.census import (
    Census,
    Columns,
    field_head,
    graph_from,
    graph_of,
    inputs_of,
    types_of_constants,
)
from reducelower.model.schemas import latest_opset, schema

__all__ = ["NodeList", "Replacement", "count_of", "nodes_of"]


_MARK = bytes(range(255, 207, -1))
"""Marks replaced nodes. No prefix of it is also a suffix, so marks cannot overlap; searching is fastest for this
length."""


Replacement: TypeAlias = "Sequence[NodeProto] | bytes"
"""Nodes that replace another: messages, or the bytes of a GraphProto that holds only nodes."""


def nodes_of(replacement: Replacement) -> Sequence[NodeProto]:
    """The nodes of a replacement; those given as bytes are copies, and editing them has no effect."""
    if not isinstance(replacement, bytes):
        return replacement
    return [NodeProto.FromString(data) for data in graph_from(replacement).node]


def count_of(replacement: Replacement) -> int:
    """The number of nodes in a replacement."""
    return len(graph_from(replacement).node if isinstance(replacement, bytes) else replacement)


def _yields_one(op_type: str) -> bool:
    found = schema(op_type, latest_opset())
    return found is not None and found.max_output == 1


def _serialized(replacement: Replacement) -> bytes:
    if isinstance(replacement, bytes):
        return replacement
    return b"".join([field_head(len(data)) + data for data in (node.SerializeToString() for node in replacement)])


class NodeList:
    """The nodes of one graph or function body. Each keeps its position until `splice`.

    Iteration gives the current nodes, for reading only. A node taken by its position may be edited.
    """

    def __init__(self, census: Census, holder: GraphProto | FunctionProto | None = None) -> None:
        """Take over the nodes of a census.

        If there is a holder, edits in place are made there too, since a rule may look into the body of a node, and a
        splice puts all nodes back.
        """
        self.census = census
        self._holder = holder
        self._graph = census.graph
        self._pieces: list[bytes] | None = None  # the current bytes of the graph if `_graph` is outdated
        self._overwritten: dict[int, bytes] = {}
        self._parsed: dict[int, NodeProto] = {}
        self._parsed_sources: dict[int, NodeProto] = {}
        self._edited: set[int] = set()
        self._producers: dict[str, NodeProto | None] = {}
        self._is_spliced = False
        # These two are called most often, so they are bound methods of the containers.
        self.original: Callable[[int], bytes] = self._graph.node.__getitem__
        self.overwrite: Callable[[int, bytes], None] = (
            self._overwritten.__setitem__ if holder is None else self._overwrite_in_holder
        )

    @classmethod
    def of_holder(cls, holder: GraphProto | FunctionProto) -> NodeList:
        """Take a copy of the nodes of a graph or function."""
        return cls(Census.of_nodes(holder), holder)

    def __len__(self) -> int:
        return len(self._graph.node)

    def __iter__(self) -> Iterator[NodeProto]:
        self._settle()
        return map(NodeProto.FromString, self._graph.node)

    def __getitem__(self, index: int) -> NodeProto:
        if index not in self._parsed and self._holder is not None:
            self._parsed[index] = self._holder.node[index]
        elif index not in self._parsed:
            data = self._overwritten[index] if index in self._overwritten else self.original(index)
            self._parsed[index] = NodeProto.FromString(data)
        return self._parsed[index]

    def _overwrite_in_holder(self, index: int, data: bytes) -> None:
        assert self._holder is not None
        self._overwritten[index] = data
        self._holder.node[index].ParseFromString(data)

    def name(self, index: int) -> str:
        """The name of a node."""
        known = self._parsed.get(index)
        return (NodeProto.FromString(self.original(index)) if known is None else known).name

    def operators(self) -> Collection[str]:
        """The distinct operator types before any edit."""
        return self.census.operators

    def positions(self, is_wanted: Callable[[str], bool]) -> Iterable[int]:
        """Positions of the nodes whose operator is wanted, or all if operator types do not identify operators."""
        return self.census.positions(is_wanted) if self.census.is_plain else range(len(self))

    def types_of_constants(self) -> Collection[int]:
        """The element types of Constant nodes before any edit; it may include types of others."""
        constants = graph_of(map(self._sources.__getitem__, self.census.positions("Constant".__eq__)))
        return types_of_constants(constants.SerializeToString())

    def producer(self, name: str) -> NodeProto | None:
        """The node that computes a value, before any edit; None if no node does."""
        if name not in self._producers:
            index = self.position(name)
            self._producers[name] = None if index is None else self.source(index)
        return self._producers[name]

    def position(self, name: str) -> int | None:
        """The position of the node that computes a value; None if no node does."""
        place = self._places.get(name.encode())
        if place is None or not name:
            return None
        index = bisect_right(self._ends, place)
        if index < len(self._sources):
            # Not whether the name is among all outputs: there may be thousands, and each is asked about.
            outputs = self.source(index).output
            at = len(outputs) - (self._ends[index] - place)
            if 0 <= at < len(outputs) and outputs[at] == name:
                return index
        return self._positions.get(name)

    @cached_property
    def _ends(self) -> Sequence[int]:
        """How many outputs each node and the nodes before it have; right if nodes have as many as their schemas say.

        Looking at every node would take several times as long.
        """
        each = np.ones(len(self._sources), np.int64)
        for index in self.census.positions(lambda op_type: not _yields_one(op_type)):
            each[index] = len(self.source(index).output)
        ends: list[int] = each.cumsum().tolist()
        return ends

    def source(self, index: int) -> NodeProto:
        """The node at a position before any edit."""
        if index not in self._parsed_sources:
            self._parsed_sources[index] = NodeProto.FromString(self._sources[index])
        return self._parsed_sources[index]

    def sources(self) -> Iterator[NodeProto]:
        """All nodes before any edit."""
        return map(self.source, range(len(self._sources)))

    @cached_property
    def _sources(self) -> Sequence[bytes]:
        return self.census.nodes

    @cached_property
    def _places(self) -> Mapping[bytes, int]:
        """The index of a value among the outputs of all nodes."""
        return dict(zip(self.census.outputs, count()))

    @cached_property
    def _positions(self) -> Mapping[str, int]:
        nodes = enumerate(map(NodeProto.FromString, self._sources))
        return {name: index for index, node in nodes for name in node.output if name}

    def of(self, is_wanted: Callable[[str], bool]) -> Iterator[tuple[int, NodeProto]]:
        """Yield position and current node of every node whose operator is wanted."""
        self._settle()
        if self._is_spliced:
            positions = Columns(self._graph.SerializeToString(), len(self)).positions(is_wanted)
        else:
            # Only edited nodes may have changed their operator.
            positions = self.census.positions(is_wanted)
            if self._edited:
                positions = sorted(self._edited.union(positions))
        for index in positions:
            node = NodeProto.FromString(self._graph.node[index])
            if is_wanted(node.op_type):
                yield index, node

    def nodes_containing(self, name: str) -> Iterator[NodeProto]:
        """The current nodes whose bytes contain the name; they may include nodes that do not use it."""
        self._settle()
        coded = name.encode()
        return (NodeProto.FromString(data) for data in self._graph.node if coded in data)

    def read(self, replaced: Mapping[int, Replacement]) -> Iterator[str]:
        """The inputs of nodes that are not replaced, and of replacements that are bytes; without those of subgraphs."""
        self._settle()
        kept = graph_of([data for index, data in enumerate(self._graph.node) if index not in replaced])
        made = [nodes for nodes in replaced.values() if isinstance(nodes, bytes)]
        return map(bytes.decode, inputs_of(b"".join([kept.SerializeToString(), *made])))

    def reading(self, names: Collection[str]) -> set[str]:
        """The names, out of those given, that nodes read; subgraphs are not searched."""
        self._settle()
        read = inputs_of(self._graph.SerializeToString())
        return set(map(bytes.decode, {name.encode() for name in names}.intersection(read)))

    def splice(self, replaced: Mapping[int, Replacement]) -> None:
        """Replace nodes by position; those at -1 are put first."""
        self._settle()
        self._parsed.clear()
        self._is_spliced = True
        if replaced:
            positions = sorted(replaced)
            made = list(map(_serialized, map(replaced.__getitem__, positions)))
            first = [made.pop(0)] if positions[0] < 0 else []
            pieces = self._split(positions[len(first) :])
            self._pieces = [*first, *chain.from_iterable(zip(pieces, made, strict=False)), pieces[-1]]
        if self._holder is not None and (replaced or self._edited):
            del self._holder.node[:]
            self._holder.node.extend(GraphProto.FromString(b"".join(self.pieces())).node)

    def _split(self, positions: Sequence[int]) -> list[bytes]:
        """The bytes of the graph before, between and after the nodes at these positions; those nodes are lost."""
        nodes, mark = self._graph.node, _MARK
        while True:
            for index in positions:
                nodes[index] = mark
            pieces: list[bytes] = self._graph.SerializeToString().split(field_head(len(mark)) + mark)
            if len(pieces) == len(positions) + 1:
                return pieces
            mark += _MARK  # a node contains the mark: try a longer one

    def pieces(self) -> list[bytes]:
        """The bytes of a GraphProto that holds only the nodes, in pieces, after a splice."""
        return [self._graph.SerializeToString()] if self._pieces is None else self._pieces

    def _settle(self) -> None:
        """Apply pending edits to the graph."""
        if self._pieces is not None:
            self._graph, self._pieces = graph_from(b"".join(self._pieces)), None
        nodes = self._graph.node
        if self._holder is not None:  # a rule may have put nodes behind those of a body
            nodes.extend(node.SerializeToString() for node in self._holder.node[len(nodes) :])
        self._edited.update(self._overwritten, self._parsed)
        for index, data in self._overwritten.items():
            nodes[index] = data
        self._overwritten.clear()
        for index, node in self._parsed.items():
            nodes[index] = node.SerializeToString()
