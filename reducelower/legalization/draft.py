"""A model while it is edited."""

from __future__ import annotations

from itertools import chain

from onnx import GraphProto, ModelProto, NodeProto

from reducelower.model.census import Census, Stated, graph_field, graph_head, leading_nodes
from reducelower.model.document import Document
from reducelower.model.names import Searchable
from reducelower.model.nodelist import SerializedNodes
from reducelower.model.skeleton import weight_bytes
from reducelower.model.wire import varint

__all__ = ["Draft"]

_HEAVY = 1 << 12
"""Bytes of weights for each node from which on it is weights that take time, to copy and to search."""


class Draft:
    """A model that is being edited.

    Attributes:
        model: the model without the nodes of its main graph.
        nodes: these nodes, which stay bytes as far as nobody looks at them.
        census: the census of the model as it was.
        stated: what its main graph states; None where most of the model are weights.
    """

    def __init__(
        self, model: ModelProto, census: Census, whole: bytes | None = None, stated: Stated | None = None
    ) -> None:
        """Edit a model; see `of_document`."""
        self.model = model
        self.census = census
        self.nodes = SerializedNodes(census)
        self.stated = stated
        self._whole = whole

    @classmethod
    def of_document(cls, source: Document) -> Draft:
        """Edit a copy of a model.

        Raises:
            google.protobuf.message.DecodeError: the bytes are no model.
        """
        nodes = _nodes_beside_weights(source)
        if nodes is not None:
            model, census = source.copy(), Census(nodes)
            if len(model.graph.node) == len(census.graph.node):  # otherwise others stand elsewhere
                del model.graph.node[:]
                return cls(model, census)
        census = Census.of_model(source.data)
        rest = census.without_nodes(source.data)
        return cls(ModelProto.FromString(rest), census, source.data, Stated(rest))

    def searchable(self) -> Searchable:
        """What tells which names are free, as long as nothing was edited.

        Weights, where they are most of a model, are not in it.
        """
        nodes, model = self.census.serialized, self.model
        if self._whole is not None and len(self._whole) <= 2 * len(nodes):
            return Searchable(self._whole, len(self.nodes))
        graph = model.graph
        names = [value.name for value in chain(graph.input, graph.output, graph.value_info)]
        names += [tensor.name for tensor in graph.initializer]
        names += [tensor.values.name for tensor in graph.sparse_initializer]
        spelled = [varint(len(name)) + name for name in map(str.encode, names)]
        functions = (function.SerializeToString() for function in model.functions)
        return Searchable(b"".join([nodes, *spelled, *functions]), len(self.nodes))

    def may_hold(self, op_type: str) -> bool:
        """Whether nodes of an operator stand anywhere in the model; told from bytes, so that there may also be none."""
        field = NodeProto(op_type=op_type).SerializeToString()
        functions = (function.SerializeToString() for function in self.model.functions)
        return any(field in piece for piece in chain(self.nodes.pieces(), functions))

    def document(self) -> Document:
        """The whole model; after editing."""
        nodes, model = self.nodes.pieces(), self.model
        if self._whole is None:
            # To put the nodes into the message, which may have been done before, leaves the weights where they are.
            del model.graph.node[:]
            if any(nodes):
                model.graph.MergeFromString(b"".join(nodes))
            return Document.of_message(model)
        data = model.SerializeToString()
        length = sum(map(len, nodes))
        if not length:
            return Document.of_bytes(data)
        # Nodes have the lowest field number in a graph, so they come first.
        graph = graph_field(data)
        assert graph is not None
        head = graph_head(graph.end - graph.value + length)
        return Document.of_bytes(b"".join((data[: graph.start], head, *nodes, memoryview(data)[graph.value :])))


def _nodes_beside_weights(source: Document) -> bytes | None:
    """The nodes of a model most of which are weights, as bytes of a graph that holds nothing else; None for others."""
    if source.has_data:
        return leading_nodes(source.data, len(source.data) // _HEAVY)
    nodes = source.message.graph.node
    if weight_bytes(source.message) < _HEAVY * len(nodes):
        return None
    return GraphProto(node=nodes).SerializeToString()
