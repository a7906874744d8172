"""RotaryEmbedding reads the first of equal tables.

PyTorch's exporter computes the same Cos and Sin again for every such node. What is written out for the first is right
for the others, and then their own tables are read by none.
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
        """A serialized node; a RotaryEmbedding reads tables that nodes before it read, where its own are equal."""
        if b"RotaryEmbedding" not in data:
            return data
        node = NodeProto.FromString(data)
        if node.op_type != "RotaryEmbedding" or node.domain not in DEFAULT_DOMAINS:
            return data
        graph = self._graph
        for place, name in enumerate(node.input):
            maker = graph.producer(name) if place in (1, 2) and graph.home(name) is graph else None
            if maker is None or len(maker.output) != 1 or not is_repeatable(maker):
                continue
            first = self._first.setdefault(kind_of(maker), name)
            if first != name:
                node.input[place] = first
                graph.release(name)
        return node.SerializeToString()
