"""A model that is parsed at most once and serialized at most once, and fresh names in it."""

from __future__ import annotations

from functools import cached_property

from onnx import ModelProto

from reducelower.model.columns import Columns
from reducelower.model.protected import objection
from reducelower.model.skeleton import LARGEST_CONSTANT, skeleton, without_weights

__all__ = ["Document", "Names", "new_objection"]


class Document:
    """A model as bytes and as a message; each is made from the other on first use.

    Neither is ever changed. To edit a model, take a copy, which becomes a new document.
    """

    def __init__(self, message: ModelProto | None = None, data: bytes | None = None) -> None:
        """Take a message, bytes, or both."""
        assert message is not None or data is not None
        if message is not None:
            self.message = message
        if data is not None:
            self.data = data

    @cached_property
    def message(self) -> ModelProto:
        """The message.

        Raises:
            google.protobuf.message.DecodeError: the bytes are not a model.
        """
        return ModelProto.FromString(self.data)

    @cached_property
    def data(self) -> bytes:
        """The bytes.

        Raises:
            google.protobuf.message.EncodeError: the message exceeds protobuf's limit of 2 GiB.
        """
        return self.message.SerializeToString()

    @property
    def bytes_at_hand(self) -> bytes | None:
        """The bytes, if they were given or needed before."""
        return self.__dict__.get("data")

    @cached_property
    def bare(self) -> Document:
        """The model without weights, for attempts that only need the plan."""
        return Document(skeleton(self.message, LARGEST_CONSTANT))

    @cached_property
    def columns(self) -> Columns:
        """All names, operators and attributes."""
        # A message without bytes is not serialized with its weights for this; its nodes stay as they are.
        return Columns(self.bytes_at_hand or without_weights(self.message).SerializeToString())

    @cached_property
    def objection(self) -> str:
        """The objection of strict shape inference to the model; empty if there is none."""
        return objection(skeleton(self.message))

    def copy(self) -> ModelProto:
        """An editable copy of the message.

        Raises:
            google.protobuf.message.DecodeError: the bytes are not a model.
        """
        if "message" not in self.__dict__:
            return ModelProto.FromString(self.data)
        copy = ModelProto()
        copy.CopyFrom(self.message)
        return copy


def new_objection(before: Document, after: Document) -> str:
    """What strict shape inference objects to in `after`; empty if nothing, or if it objects to `before` as well."""
    return after.objection if after.objection and not before.objection else ""


class Names:
    """Makes names that neither occur in the model nor were made before."""

    def __init__(self, model: Document) -> None:
        """Take the model, without reading its names yet."""
        self._model = model
        self._taken: set[bytes] | None = None
        self._last: dict[str, int] = {}

    def fresh(self, stem: str, tail: str) -> str:
        """A fresh name made of a stem, such as a node name, and a tail, such as ``/ReduceL2/square``."""
        if self._taken is None:
            self._taken = self._model.columns.names()
        taken, name = self._taken, stem + tail
        coded = name.encode()
        if coded in taken:
            # Names are never released, so no candidate that was taken once is tried again.
            number = self._last.get(name, 1) + 1
            while (coded := f"{name}_{number}".encode()) in taken:
                number += 1
            self._last[name] = number
            name = f"{name}_{number}"
        taken.add(coded)
        return name
