"""Compute what several nodes need once, where the first of them needs it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from onnx import NodeProto

from reducelower.legalization.tidying import is_repeatable, kind_of, rename_read
from reducelower.model.nodelist import nodes_of
from reducelower.model.schemas import DEFAULT_DOMAINS

if TYPE_CHECKING:
    from collections.abc import Hashable

    from reducelower.legalization.edits import Edit
    from reducelower.scope.graph import GraphScope

__all__ = ["EqualTables", "share"]


def share(edit: Edit) -> None:
    """Let later rewrites of a graph read what earlier ones compute, in place of computing it again."""
    first_of_kind: dict[Hashable, NodeProto] = {}
    originals = {index: edit.scope.node_list[index] for index in sorted(edit.shareable)}
    readers = Counter(name for node in originals.values() for name in set(node.input))
    for index, original in originals.items():
        outputs = set(original.output)
        unshared = {name for name in original.input if readers[name] == 1}  # no other rewrite reads them
        renamed: dict[str, str] = {}
        kept = []
        for node in nodes_of(edit.replaced.get(index, ())):
            rename_read(node, renamed)
            if not unshared.isdisjoint(node.input):
                unshared.update(node.output)
            elif outputs.isdisjoint(node.output) and is_repeatable(node):
                first = first_of_kind.setdefault(kind_of(node), node)
                if first is not node:
                    renamed.update(zip(node.output, first.output, strict=True))
                    continue
            kept.append(node)
        if renamed:
            edit.replaced[index] = kept
            stated = edit.types.get(index, {})
            edit.types[index] = {name: value_type for name, value_type in stated.items() if name not in renamed}


class EqualTables:
    """The tables that the RotaryEmbeddings of a graph read, by what computes them.

    PyTorch's exporter computes the same Cos and Sin again for each such node. If all nodes read the first tables, what
    a rule writes for these serves all nodes, and the other tables become unused.
    """

    def __init__(self, graph: GraphScope) -> None:
        self._graph = graph
        self._first: dict[Hashable, str] = {}

    def read_first(self, data: bytes) -> bytes:
        """The serialized node; a RotaryEmbedding reads equal tables of earlier nodes in place of its own."""
        if b"RotaryEmbedding" not in data:
            return data
        node = NodeProto.FromString(data)
        if node.op_type != "RotaryEmbedding" or node.domain not in DEFAULT_DOMAINS:
            return data
        graph = self._graph
        for place, name in enumerate(node.input):
            producer = graph.producer(name) if place in (1, 2) and graph.home(name) is graph else None
            if producer is None or len(producer.output) != 1 or not is_repeatable(producer):
                continue
            first = self._first.setdefault(kind_of(producer), name)
            if first != name:
                node.input[place] = first
        return node.SerializeToString()
