"""A model while it is edited, and the model as it was."""

from __future__ import annotations

from functools import cached_property

from onnx import ModelProto

from reducelower.model.census import Census, graph_field, graph_head
from reducelower.model.inference import weight_bytes
from reducelower.model.nodelist import NodeList, ParsedNodes, SerializedNodes

__all__ = ["Draft", "Source"]

# Up to this size a model is edited by way of its bytes, which then also answer which names are free.
_SEARCHABLE = 64 << 20


class Source:
    """A model as it was: its bytes, its message, or both, the message made from the bytes where it is asked for.

    Attributes:
        serialized: the bytes; None where the model is too large to be searched again and again.
        is_lenient: whether it is known that shape inference objects to the model, which is converted nevertheless.
    """

    def __init__(self, given: ModelProto | bytes, serialized: bytes | None = None, *, is_lenient: bool = False) -> None:
        """Take a message or bytes, which nobody changes from now on; see `of_message` and `of_bytes`."""
        self.serialized = serialized
        self.is_lenient = is_lenient
        self._given = given

    @classmethod
    def of_message(cls, model: ModelProto) -> Source:
        """A message and, unless it holds much, its bytes."""
        serialized = model.SerializeToString() if weight_bytes(model) <= _SEARCHABLE else None
        return cls(model, serialized)

    @classmethod
    def of_bytes(cls, serialized: bytes) -> Source:
        """The bytes of a model."""
        return cls(serialized, serialized if len(serialized) <= _SEARCHABLE else None)

    @cached_property
    def model(self) -> ModelProto:
        """The message.

        Raises:
            google.protobuf.message.DecodeError: the bytes are no model.
        """
        return self._given if isinstance(self._given, ModelProto) else ModelProto.FromString(self._given)


class Draft:
    """A model that is being edited.

    Attributes:
        model: the model; where `census` is set, without the nodes of its main graph.
        nodes: the nodes of its main graph.
        census: the census of the model as it was, where it was at hand as bytes.
    """

    def __init__(self, model: ModelProto, census: Census | None = None) -> None:
        """Edit a message where it stands; see `of_bytes` for the other way."""
        self.model = model
        self.census = census
        self._serialized = None if census is None else SerializedNodes(census)
        self.nodes: NodeList = ParsedNodes(model.graph.node) if self._serialized is None else self._serialized

    @classmethod
    def of_bytes(cls, serialized: bytes) -> Draft:
        """Edit a model whose nodes stay bytes as far as nobody looks at them.

        Raises:
            google.protobuf.message.DecodeError: the bytes are no model.
        """
        census = Census(serialized)
        return cls(ModelProto.FromString(census.rest), census)

    @classmethod
    def of_source(cls, source: Source) -> Draft:
        """Edit a copy of a model."""
        if source.serialized is not None:
            return cls.of_bytes(source.serialized)
        copy = ModelProto()
        copy.CopyFrom(source.model)
        return cls(copy)

    def message(self) -> ModelProto:
        """The whole model; after editing."""
        return self.model if self._serialized is None else ModelProto.FromString(self.serialize())

    def serialize(self) -> bytes:
        """The bytes of the whole model, as protobuf writes it; after editing."""
        data = self.model.SerializeToString()
        if self._serialized is None:
            return data
        nodes = self._serialized.pieces()
        length = sum(map(len, nodes))
        if not length:
            return data
        # Nodes have the lowest field number in a graph, so they come first.
        graph = graph_field(data)
        assert graph is not None
        head = graph_head(graph.end - graph.value + length)
        return b"".join((data[: graph.start], head, *nodes, memoryview(data)[graph.value :]))
