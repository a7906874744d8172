"""The nodes of one graph during editing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

from onnx import GraphProto, NodeProto

from reducelower.model.columns import NodeColumns, message_class
from reducelower.model.graph import read_by

__all__ = ["NodeList", "Replacement", "inputs_of", "nodes_of", "reads_of"]

Replacement: TypeAlias = "Sequence[NodeProto | bytes]"
"""Nodes that replace another: messages, or serialized ones."""


def nodes_of(replacement: Replacement) -> Sequence[NodeProto]:
    """The nodes of a replacement. Of serialized ones they are copies, and editing them has no effect."""
    return [NodeProto.FromString(node) if isinstance(node, bytes) else node for node in replacement]


def _serialized(replacement: Iterable[NodeProto | bytes]) -> list[bytes]:
    return [node if isinstance(node, bytes) else node.SerializeToString() for node in replacement]


def _as_graph(nodes: Iterable[bytes]) -> bytes:
    """Serialized nodes as those of a serialized GraphProto."""
    return message_class("GraphOfNodes")(field_1=nodes).SerializeToString()  # type: ignore[no-any-return]


def inputs_of(nodes: Iterable[bytes]) -> Sequence[bytes]:
    """The inputs of serialized nodes, once for each time, without what their subgraphs read."""
    return message_class("Graph").FromString(_as_graph(nodes)).field_1.field_1[:]  # type: ignore[no-any-return]


def reads_of(nodes: Iterable[NodeProto | bytes]) -> Sequence[bytes]:
    """The names that nodes and their subgraphs read, once for each time."""
    data = _serialized(nodes)
    if not data:
        return ()
    as_one = message_class("Graph").FromString(_as_graph(data)).field_1  # without looking at each
    if as_one.field_5.HasField("field_6") or as_one.field_5.HasField("field_11"):
        return [name.encode() for node in nodes_of(data) for name in read_by(node)]
    return as_one.field_1[:]  # type: ignore[no-any-return]


class NodeList:
    """The nodes of one graph, which may be edited. Each keeps its position until `splice`.

    Attributes:
        source: the nodes before any edit.
        touched: the positions of nodes that may have been edited.
    """

    def __init__(self, holder: GraphProto, source: NodeColumns) -> None:
        """Take the graph, and its nodes before any edit."""
        self._holder = holder
        self.source = source
        self._operators = source.operators
        if len(source.operators) != len(source.data):  # a node without operator
            self._operators = [node.op_type.encode() for node in holder.node]
        self._domains: Mapping[int, str] = {}
        if source.domains:
            self._domains = {at: node.domain for at, node in enumerate(holder.node) if node.domain}
        self.touched: set[int] = set()
        self._overwritten: dict[int, bytes] = {}

    def __len__(self) -> int:
        return len(self.source.data)

    def __getitem__(self, index: int) -> NodeProto:
        self.touched.add(index)
        node = self._holder.node[index]
        if index in self._overwritten:
            node.ParseFromString(self._overwritten.pop(index))
        return node

    def serialized(self, index: int) -> bytes:
        """The bytes of a node."""
        if index not in self.touched:
            return self.source.data[index]
        return self._overwritten.get(index) or self._holder.node[index].SerializeToString()

    def overwrite(self, index: int, data: bytes) -> None:
        """Replace a node in place by another, serialized one."""
        self.touched.add(index)
        self._overwritten[index] = data

    @cached_property
    def op_types(self) -> frozenset[str]:
        """The operators before any edit."""
        return frozenset(map(bytes.decode, set(self._operators)))

    def positions(self, is_wanted: Callable[[str], bool]) -> Sequence[int]:
        """Positions of the nodes with a wanted operator before any edit, and of all nodes of other domains."""
        wanted = set(map(str.encode, filter(is_wanted, self.op_types)))
        positions = [index for index, op_type in enumerate(self._operators) if op_type in wanted] if wanted else []
        return sorted(self._domains.keys() | positions) if self._domains else positions

    def splice(self, replaced: Mapping[int, Replacement]) -> None:
        """Write the edited nodes, and replace nodes by position; replacements at -1 come first."""
        if not replaced:
            for index in tuple(self._overwritten):
                self[index]
            return
        nodes = list(self.source.data)
        for index in self.touched:
            nodes[index] = self.serialized(index)
        # A rule may have appended nodes to the body after this list was made.
        nodes += map(NodeProto.SerializeToString, self._holder.node[len(nodes) :])
        spliced = _serialized(replaced.get(-1, ()))
        copied = 0
        for index in sorted(replaced.keys() - {-1}):
            spliced += nodes[copied:index]
            spliced += _serialized(replaced[index])
            copied = index + 1
        spliced += nodes[copied:]
        self._holder.ClearField("node")
        self._holder.MergeFromString(_as_graph(spliced))
