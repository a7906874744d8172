"""A model on its way through: parsed once and serialized once, whether bytes or message are wanted."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import cached_property
from weakref import ref

from onnx import ModelProto, TensorProto

from reducelower.model.inference import Inference
from reducelower.model.skeleton import skeleton, weight_bytes

__all__ = ["Document"]

_SEARCHABLE = 64 << 20
"""Bytes up to which a model as a whole answers which names are free."""

_LARGE = 4 << 20
"""Bytes from which on it takes longer to parse a model once more than to copy what is not weights."""


class Document:
    """A model as bytes and as a message, each made from the other when it is first asked for.

    Nobody changes either: who edits a model makes a draft of it, of which another document comes.
    """

    def __init__(self, message: ModelProto | None = None, data: bytes | None = None) -> None:
        """Take a message, bytes, or both; see `of_message` and `of_bytes`."""
        assert message is not None or data is not None
        self._message = message
        self._data = data
        self._inferences: dict[Hashable, Inference] = {}
        self._whole: Document | None = None
        self._bare: ModelProto | None = None

    @classmethod
    def of_message(cls, message: ModelProto) -> Document:
        """A model that is at hand as a message."""
        return cls(message)

    @classmethod
    def of_bytes(cls, data: bytes) -> Document:
        """A model that is at hand as bytes."""
        return cls(data=data)

    def for_trials(self) -> Document:
        """The model without weights, for attempts of which only the plan is wanted; its types are inferred once.

        What is written may depend on whether types were known, so no other attempt starts with those of an earlier one.
        """
        if self._whole is not None:
            return self
        trials = Document(skeleton(self.message))
        trials._whole = self
        trials._inferences = self._inferences
        return trials

    def with_message(self, message: ModelProto) -> Document:
        """A document of a changed copy of the message, whose weights are those of this one."""
        changed = Document(message)
        changed._whole = self._whole
        return changed

    def weight(self, name: str) -> TensorProto | None:
        """The initializer of the main graph of a name, with its value, in a document for trials; None in others."""
        return None if self._whole is None else self._whole._initializers.get(name)

    @cached_property
    def _initializers(self) -> Mapping[str, TensorProto]:
        return {tensor.name: tensor for tensor in self.message.graph.initializer}

    def inference(
        self,
        element_types: Mapping[str, int],
        ranks: Mapping[str, int],
        sole_type: Callable[[], int | None],
        *,
        lenient: bool,
    ) -> Inference:
        """The types of the model, for one attempt; the arguments are those of `Inference`."""
        key = frozenset(element_types.items()), frozenset(ranks.items()), lenient
        if self._whole is None:
            here = ref(self)  # what is kept here must not hold on to this, and with it to the weights
            self._inferences[key] = Inference(lambda: _bare(here), sole_type, element_types, ranks, lenient=lenient)
        elif key not in self._inferences:
            message = self.message
            self._inferences[key] = Inference(lambda: message, sole_type, element_types, ranks, lenient=lenient)
        return self._inferences[key]

    @property
    def message(self) -> ModelProto:
        """The message.

        Raises:
            google.protobuf.message.DecodeError: the bytes are no model.
        """
        if self._message is None:
            self._message = ModelProto.FromString(self._data or b"")
        return self._message

    @property
    def bare(self) -> ModelProto:
        """The message, for questions that are not about weights; it may be without these, see `copy`."""
        return self.message if self._bare is None else self._bare

    def copy(self) -> ModelProto:
        """A copy of the message, to be edited; where only the bytes are at hand, they are parsed for it alone."""
        copy = ModelProto()
        if self._message is not None:
            copy.CopyFrom(self._message)
        else:
            copy.MergeFromString(self.data)
            if len(self.data) >= _LARGE:
                self._bare = skeleton(copy)
        return copy

    @property
    def has_data(self) -> bool:
        """Whether the bytes are at hand."""
        return self._data is not None

    @property
    def data(self) -> bytes:
        """The bytes.

        Raises:
            google.protobuf.message.EncodeError: the message is over protobuf's limit of 2 GiB.
        """
        if self._data is None:
            assert self._message is not None
            self._data = self._message.SerializeToString()
        return self._data

    @cached_property
    def searchable(self) -> bytes | None:
        """The bytes; None where the model is too large for them to be searched again and again."""
        size = weight_bytes(self.message) if self._data is None else len(self._data)
        return self.data if size <= _SEARCHABLE else None


def _bare(document: ref[Document]) -> ModelProto:
    found = document()
    assert found is not None
    return found.bare
