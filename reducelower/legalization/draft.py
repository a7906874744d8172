"""A model during editing."""

from __future__ import annotations

from itertools import chain

from onnx import ModelProto, NodeProto

from reducelower.model.census import Census, Stated, graph_field, graph_head
from reducelower.model.document import Document
from reducelower.model.nodelist import NodeList
from reducelower.model.skeleton import weight_bytes

__all__ = ["Draft"]

_HEAVY = 1 << 12
"""Bytes of weights per node from which on weights take most of the time to copy and to search."""


class Draft:
    """A model during editing.

    Attributes:
        model: the model without the nodes of its main graph.
        nodes: these nodes, which stay serialized until they are needed.
        stated: the types that the main graph states; None if the model is mostly weights.
    """

    def __init__(
        self, model: ModelProto, census: Census, whole: bytes | None = None, stated: Stated | None = None
    ) -> None:
        """See `of_document`."""
        self.model = model
        self.nodes = NodeList(census)
        self.stated = stated
        self._whole = whole

    @classmethod
    def of_document(cls, source: Document) -> Draft:
        """Start to edit a copy of a model.

        Raises:
            google.protobuf.message.DecodeError: the bytes are not a model.
        """
        if not source.has_data and _is_mostly_weights(source.message):
            model = source.copy()
            census = Census.of_nodes(model.graph)
            del model.graph.node[:]
            return cls(model, census)
        data = source.data
        census = Census.of_model(data)
        rest = census.without_nodes(data)
        return cls(ModelProto.FromString(rest), census, data, Stated(rest))

    def may_hold(self, op_type: str) -> bool:
        """Whether the model may have a node of the operator; searched in bytes, so True can be wrong."""
        field = NodeProto(op_type=op_type).SerializeToString()
        functions = (function.SerializeToString() for function in self.model.functions)
        return any(field in piece for piece in chain(self.nodes.pieces(), functions))

    def document(self) -> Document:
        """The whole model, after editing."""
        nodes, model = self.nodes.pieces(), self.model
        if self._whole is None:
            # An earlier call may have put the nodes there. Replacing them does not copy the weights.
            del model.graph.node[:]
            if any(nodes):
                model.graph.MergeFromString(b"".join(nodes))
            return Document.of_message(model)
        data = model.SerializeToString()
        length = sum(map(len, nodes))
        if not length:
            return Document.of_bytes(data)
        # Nodes have the lowest field number of GraphProto, so they come first.
        graph = graph_field(data)
        assert graph is not None
        head = graph_head(graph.end - graph.value + length)
        return Document.of_bytes(b"".join((data[: graph.start], head, *nodes, memoryview(data)[graph.value :])))


def _is_mostly_weights(model: ModelProto) -> bool:
    return weight_bytes(model) > _HEAVY * len(model.graph.node)
