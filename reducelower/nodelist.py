"""The nodes of one graph or function body while it is edited, as messages or as bytes.

Most nodes of a large model are touched by no rule. As bytes they are never parsed and never written again: one is
parsed when a rule asks for it, and what comes of it takes its place as bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, overload

from onnx import NodeProto, TypeProto

from reducelower.census import Census, Columns, graph_of

__all__ = ["NodeList", "ParsedNodes", "SerializedNodes", "SerializedReplacement"]


class SerializedReplacement(Sequence[NodeProto]):
    """Nodes that come in the place of another, as bytes until somebody looks at them; they are not to be edited.

    Attributes:
        data: the serialized nodes.
        types: types of what they yield, as far as the graph is to state them.
    """

    __slots__ = ("data", "types")

    def __init__(self, data: list[bytes], types: list[tuple[str, TypeProto]]) -> None:
        self.data = data
        self.types = types

    def __len__(self) -> int:
        return len(self.data)

    @overload
    def __getitem__(self, index: int) -> NodeProto: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[NodeProto]: ...

    def __getitem__(self, index: int | slice) -> NodeProto | Sequence[NodeProto]:
        if isinstance(index, slice):
            return list(map(NodeProto.FromString, self.data[index]))
        return NodeProto.FromString(self.data[index])


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

    def positions(self, is_wanted: Callable[[str], bool]) -> Iterable[int]:
        """Positions of all nodes: asking each for its operator takes as long as looking at it."""
        return range(len(self._nodes))

    def of(self, is_wanted: Callable[[str], bool]) -> Iterator[tuple[int, NodeProto]]:
        """The nodes of some operators as they are now, each with its position."""
        return ((index, node) for index, node in enumerate(self._nodes) if is_wanted(node.op_type))

    def mentioning(self, name: str) -> Iterator[NodeProto]:
        """All nodes: finding out which bear a name takes as long as looking at them."""
        return iter(self._nodes)

    def read(self, replaced: Mapping[int, Sequence[NodeProto]]) -> Iterator[str]:
        """What nodes at other positions and serialized replacements read; not what graphs inside nodes do."""
        for index, node in enumerate(self._nodes):
            if index not in replaced:
                yield from node.input
        for replacement in replaced.values():
            if isinstance(replacement, SerializedReplacement):
                yield from (name for node in replacement for name in node.input)

    def splice(self, replaced: Mapping[int, Sequence[NodeProto]]) -> None:
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
            for number, node in enumerate(replacement):
                if node is source:
                    places[index] = (index << 20) + number
                    kept = True
                else:
                    nodes.add().CopyFrom(node)
                    places.append((index << 20) + number)
            if source is not None and not kept:
                places[index] = count << 20
                removed += 1
        # `next` takes a default as its second argument: here the node, whose turn it is and which is not looked at.
        nodes.sort(key=partial(next, iter(places)))
        if removed:
            del nodes[len(nodes) - removed :]


class SerializedNodes:
    """The nodes of the main graph of a model that is at hand as bytes.

    Attributes:
        graph: a graph that holds nothing but the nodes, serialized; as they are now once they were spliced.
    """

    def __init__(self, census: Census) -> None:
        """Take over the nodes of a census."""
        self.graph = census.graph
        self._census = census
        self._overwritten: dict[int, bytes] = {}
        self._parsed: dict[int, NodeProto] = {}
        # The loop over all nodes goes through these two.
        self.original: Callable[[int], bytes] = self.graph.node.__getitem__
        self.overwrite: Callable[[int, bytes], None] = self._overwritten.__setitem__

    def __len__(self) -> int:
        return len(self.graph.node)

    def __iter__(self) -> Iterator[NodeProto]:
        return map(NodeProto.FromString, self._now())

    def __getitem__(self, index: int) -> NodeProto:
        if index not in self._parsed:
            data = self._overwritten[index] if index in self._overwritten else self.original(index)
            self._parsed[index] = NodeProto.FromString(data)
        return self._parsed[index]

    def name(self, index: int) -> str:
        """The name of a node."""
        known = self._parsed.get(index)
        return (NodeProto.FromString(self.original(index)) if known is None else known).name

    def positions(self, is_wanted: Callable[[str], bool]) -> Iterable[int]:
        """Positions of the nodes of some operators; of all nodes where operators do not tell what nodes are."""
        return self._census.positions(is_wanted) if self._census.is_plain else range(len(self))

    def of(self, is_wanted: Callable[[str], bool]) -> Iterator[tuple[int, NodeProto]]:
        """The nodes of some operators as they are now, each with its position."""
        nodes = self._now()
        for index in Columns(graph_of(nodes)).positions(is_wanted):
            node = NodeProto.FromString(nodes[index])
            if is_wanted(node.op_type):
                yield index, node

    def mentioning(self, name: str) -> Iterator[NodeProto]:
        """The nodes in which a name stands, as they are now, and maybe others."""
        coded = name.encode()
        return (NodeProto.FromString(data) for data in self._now() if coded in data)

    def read(self, replaced: Mapping[int, Sequence[NodeProto]]) -> Iterator[str]:
        """What nodes at other positions and serialized replacements read; not what graphs inside nodes do."""
        nodes: list[bytes] = [data for index, data in enumerate(self._now()) if index not in replaced]
        for replacement in replaced.values():
            if isinstance(replacement, SerializedReplacement):
                nodes += replacement.data
        return map(bytes.decode, Columns(graph_of(nodes)).inputs)

    def splice(self, replaced: Mapping[int, Sequence[NodeProto]]) -> None:
        """Put nodes in the place of others, by position; those at -1 come first."""
        if replaced:
            nodes = self._now()
            spliced: list[bytes] = []
            done = 0
            for index in sorted(replaced):
                replacement = replaced[index]
                spliced += nodes[done : max(index, 0)]
                if isinstance(replacement, SerializedReplacement):
                    spliced += replacement.data
                else:
                    spliced += [node.SerializeToString() for node in replacement]
                done = index + 1
            self.graph = graph_of(spliced + nodes[done:])
        else:
            nodes = self.graph.node
            for index, data in self._changed():
                nodes[index] = data
        self._overwritten.clear()
        self._parsed.clear()

    def _now(self) -> list[bytes]:
        """All nodes as they are now."""
        nodes: list[bytes] = list(self.graph.node[:])
        for index, data in self._changed():
            nodes[index] = data
        return nodes

    def _changed(self) -> Iterator[tuple[int, bytes]]:
        yield from self._overwritten.items()
        for index, node in self._parsed.items():
            yield index, node.SerializeToString()


NodeList: TypeAlias = "ParsedNodes | SerializedNodes"
"""Nodes in order, in either form. Until they are spliced each keeps its position, whatever becomes of it.

As a sequence they are the nodes as they are now: those one iterates over are to be read, one asked for by its position
may be edited as well.
"""
