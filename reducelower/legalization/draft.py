"""A model while it is edited."""

from __future__ import annotations

from itertools import chain

from onnx import ModelProto, NodeProto

from reducelower.model.census import Census, graph_field, graph_head
from reducelower.model.document import Document
from reducelower.model.graph import all_nodes
from reducelower.model.inference import skeleton
from reducelower.model.nodelist import NodeList, ParsedNodes, SerializedNodes

__all__ = ["Draft"]

_HEAVY = 2048
"""Bytes for each value that a model states or holds from which on it pays to search it without weights."""


class Draft:
    """A model that is being edited.

    Attributes:
        model: the model; where `census` is set, without the nodes of its main graph.
        nodes: the nodes of its main graph.
        census: the census of the model as it was, where it was at hand as bytes.
    """

    def __init__(self, model: ModelProto, census: Census | None = None, source: bytes | None = None) -> None:
        """Edit a message where it stands; see `of_bytes` for the other way."""
        self.model = model
        self.census = census
        self._source = source
        self._serialized = None if census is None else SerializedNodes(census)
        self.nodes: NodeList = ParsedNodes(model.graph.node) if self._serialized is None else self._serialized

    @classmethod
    def of_bytes(cls, serialized: bytes) -> Draft:
        """Edit a model whose nodes stay bytes as far as nobody looks at them.

        Raises:
            google.protobuf.message.DecodeError: the bytes are no model.
        """
        census = Census(serialized)
        return cls(ModelProto.FromString(census.rest), census, serialized)

    @classmethod
    def of_document(cls, source: Document) -> Draft:
        """Edit a copy of a model."""
        if source.searchable is not None:
            return cls.of_bytes(source.searchable)
        copy = ModelProto()
        copy.CopyFrom(source.message)
        return cls(copy)

    def searchable(self) -> bytes | None:
        """Bytes in which every name of the model stands, its length in front of it, as long as nothing was edited.

        Weights, which may be most of a model, are not among them. None where the model was not at hand as bytes.
        """
        if self.census is None or self._source is None:
            return None
        graph = self.model.graph
        if len(self.census.rest) < _HEAVY * (len(graph.initializer) + len(graph.value_info) + 1):
            return self._source
        return self.census.serialized + skeleton(self.model).SerializeToString()

    def may_hold(self, op_type: str) -> bool:
        """Whether nodes of an operator stand anywhere in the model; told from bytes, so that there may also be none."""
        if self._serialized is None:
            return any(node.op_type == op_type for node in all_nodes(self.model))
        field = NodeProto(op_type=op_type).SerializeToString()
        functions = (function.SerializeToString() for function in self.model.functions)
        return any(field in piece for piece in chain(self._serialized.pieces(), functions))

    def document(self) -> Document:
        """The whole model; after editing."""
        if self._serialized is None:
            return Document.of_message(self.model)
        data = self.model.SerializeToString()
        nodes = self._serialized.pieces()
        length = sum(map(len, nodes))
        if not length:
            return Document.of_bytes(data)
        # Nodes have the lowest field number in a graph, so they come first.
        graph = graph_field(data)
        assert graph is not None
        head = graph_head(graph.end - graph.value + length)
        return Document.of_bytes(b"".join((data[: graph.start], head, *nodes, memoryview(data)[graph.value :])))
