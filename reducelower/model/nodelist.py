"""The nodes of one graph or function body during editing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import TypeAlias

from onnx import FunctionProto, GraphProto, NodeProto

from reducelower.model.columns import Columns, message_class
from reducelower.model.graph import read_by
from reducelower.model.wire import varint

__all__ = ["NodeList", "Replacement", "nodes_of", "reads_of"]


Replacement: TypeAlias = "Sequence[NodeProto] | bytes"
"""Nodes that replace another: messages, or the bytes of a GraphProto that holds only nodes."""


def nodes_of(replacement: Replacement) -> Sequence[NodeProto]:
    """The nodes of a replacement. If it is bytes, they are copies, and editing them has no effect."""
    return GraphProto.FromString(replacement).node if isinstance(replacement, bytes) else replacement


def reads_of(replacements: Iterable[Replacement]) -> Sequence[str]:
    """The names that replacements and their subgraphs read, once for each time."""
    data = b"".join(map(_bytes_of, replacements))
    nodes = message_class("Graph").FromString(data).field_1  # all nodes as one, without looking at each
    if nodes.field_5.HasField("field_6") or nodes.field_5.HasField("field_11"):
        return [name for node in nodes_of(data) for name in read_by(node)]
    return list(map(bytes.decode, nodes.field_1))


class NodeList:
    """The nodes of one graph or function body, which may be edited. Each keeps its position until `splice`.

    Attributes:
        operators: the operators before any edit, in order.
        touched: the positions of nodes that may have been edited.
        main: the nodes as columns, before any edit; None unless they are those of a main graph.
    """

    def __init__(self, holder: GraphProto | FunctionProto, columns: Columns | None = None) -> None:
        """Take the graph or function body, and for a main graph the columns of the model before any edit."""
        self._holder = holder
        self.main = None if columns is None else columns.main_nodes
        if self.main is None or len(self.main.operators) != len(self.main.data):  # a node without operator
            self.operators = [node.op_type for node in holder.node]
        else:
            self.operators = list(map(bytes.decode, self.main.operators))
        has_domains = self.main is None or self.main.domains
        named = enumerate(holder.node) if has_domains else ()
        self._domains = {at: node.domain for at, node in named if node.domain}
        self.touched: set[int] = set()

    def __len__(self) -> int:
        return len(self.operators)

    def __getitem__(self, index: int) -> NodeProto:
        self.touched.add(index)
        return self._holder.node[index]

    def serialized(self, index: int) -> bytes:
        """The bytes of a node."""
        if self.main is None or index in self.touched:
            return self._holder.node[index].SerializeToString()
        return self.main.data[index]

    def overwrite(self, index: int, data: bytes) -> None:
        """Replace a node in place by another, serialized one."""
        self[index].ParseFromString(data)

    @property
    def foreign(self) -> Collection[tuple[str, str]]:
        """Domain and operator of the nodes that name a domain, before any edit."""
        return {(domain, self.operators[at]) for at, domain in self._domains.items()}

    @cached_property
    def op_types(self) -> frozenset[str]:
        """The operators before any edit."""
        return frozenset(self.operators)

    def positions(self, is_wanted: Callable[[str], bool]) -> Sequence[int]:
        """Positions of the nodes with a wanted operator before any edit, and of all nodes of other domains."""
        wanted = set(filter(is_wanted, self.op_types))
        positions = [index for index, op_type in enumerate(self.operators) if op_type in wanted] if wanted else []
        return sorted(self._domains.keys() | positions) if self._domains else positions

    def of(self, is_wanted: Callable[[str], bool]) -> Iterator[tuple[int, NodeProto]]:
        """Yield position and current node of every node whose operator is wanted."""
        for index in sorted(self.touched.union(self.positions(is_wanted))):  # no other node changed its operator
            if is_wanted(self._holder.node[index].op_type):
                yield index, self._holder.node[index]

    def splice(self, replaced: Mapping[int, Replacement]) -> None:
        """Replace nodes by position; replacements at -1 come first."""
        if not replaced:
            return
        made = [_bytes_of(replaced.get(-1, ()))]
        # Also nodes that a rule appended to the body after this list was made.
        for index in range(len(self._holder.node)):
            nodes = replaced.get(index)
            if nodes is None:
                node = self.serialized(index)
                made += _head(len(node)), node
            else:
                made.append(_bytes_of(nodes))
        spliced = b"".join(made)
        self._holder.ClearField("node")
        if isinstance(self._holder, GraphProto):
            self._holder.MergeFromString(spliced)
        else:
            self._holder.node.extend(nodes_of(spliced))


def _bytes_of(replacement: Replacement) -> bytes:
    return replacement if isinstance(replacement, bytes) else GraphProto(node=replacement).SerializeToString()


@cache
def _head(length: int) -> bytes:
    """Tag and length that precede a node of this length in a GraphProto."""
    return b"\x0a" + varint(length)
