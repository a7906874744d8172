"""Let every RotaryEmbedding read the first of several equal tables.

PyTorch's exporter computes the same Cos and Sin again for each such node. If all nodes read the first tables, what a
rule writes for these serves all nodes, and the other tables become unused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import NodeProto

from reducelower.legalization.tidying import is_repeatable, kind_of
from reducelower.model.schemas import DEFAULT_DOMAINS

if TYPE_CHECKING:
    from collections.abc import Hashable

    from reducelower.scope.graph import GraphScope

__all__ = ["EqualTables"]


class EqualTables:
    """The tables that the nodes of a graph read, by what computes them."""

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
