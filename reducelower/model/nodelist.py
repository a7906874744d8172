"""The nodes of one graph or function body during editing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import TypeAlias

from onnx import FunctionProto, GraphProto, NodeProto

__all__ = ["NodeList", "Replacement", "nodes_of"]


Replacement: TypeAlias = "Sequence[NodeProto] | bytes"
"""Nodes that replace another: messages, or the bytes of a GraphProto that holds only nodes."""


def nodes_of(replacement: Replacement) -> Sequence[NodeProto]:
    """The nodes of a replacement. If it is bytes, they are copies, and editing them has no effect."""
    return GraphProto.FromString(replacement).node if isinstance(replacement, bytes) else replacement


_KIND = attrgetter("op_type", "domain")


class NodeList:
    """The nodes of one graph or function body, which may be edited. Each keeps its position until `splice`."""

    def __init__(self, holder: GraphProto | FunctionProto) -> None:
        """Take the graph or function body."""
        self._holder = holder
        self._nodes: list[NodeProto] = list(holder.node)
        self._kinds: dict[tuple[str, str], list[int]] = {}
        for index, kind in enumerate(map(_KIND, self._nodes)):
            self._kinds.setdefault(kind, []).append(index)
        self._overwritten: set[int] = set()

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[NodeProto]:
        return iter(self._nodes)

    def __getitem__(self, index: int) -> NodeProto:
        return self._nodes[index]

    def serialized(self, index: int) -> bytes:
        """The bytes of a node."""
        return self._nodes[index].SerializeToString()

    def overwrite(self, index: int, data: bytes) -> None:
        """Replace a node in place by another, serialized one."""
        self._overwritten.add(index)
        self._nodes[index].ParseFromString(data)

    @property
    def op_types(self) -> Collection[str]:
        """The operators before any edit."""
        return {op_type for op_type, _ in self._kinds}

    def positions(self, is_wanted: Callable[[str], bool]) -> Sequence[int]:
        """Positions of the nodes with a wanted operator before any edit, and of all nodes of other domains."""
        by_kind = [positions for (op_type, domain), positions in self._kinds.items() if domain or is_wanted(op_type)]
        return by_kind[0] if len(by_kind) == 1 else sorted(chain(*by_kind))

    def of(self, is_wanted: Callable[[str], bool]) -> Iterator[tuple[int, NodeProto]]:
        """Yield position and current node of every node whose operator is wanted."""
        for index in sorted(self._overwritten.union(self.positions(is_wanted))):  # no other node changed its operator
            if is_wanted(self._nodes[index].op_type):
                yield index, self._nodes[index]

    def splice(self, replaced: Mapping[int, Replacement]) -> None:
        """Replace nodes by position; replacements at -1 come first."""
        if not replaced:
            return
        made = list(nodes_of(replaced.get(-1, ())))
        # Also nodes that a rule appended to the body after this list was made.
        for index, node in enumerate(self._holder.node):
            if index in replaced:
                made += nodes_of(replaced[index])
            else:
                made.append(node)
        del self._holder.node[:]
        self._holder.node.extend(made)
        self._nodes = list(self._holder.node)
