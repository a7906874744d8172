"""Leave large weights in the model's own file or bytes instead of parsing and writing them.

In the model that the engine sees, a large initializer refers to its place in the file, like ONNX external data
(location, offset, length). Such a model is valid, and onnxruntime can run it from the model's folder. When the model is
written, references become bytes again (see `splice`).

The ``checksum`` entry distinguishes references from real external data: it has a random number, drawn when the file is
read, so no model can contain such a reference.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from io import FileIO
from pathlib import Path

from onnx import ModelProto, TensorProto

from reducelower.files.external import external_tensors
from reducelower.files.wire import LENGTH, RAW_DATA, Field, MalformedError, Piece, Window, varint, with_initializers
from reducelower.model.skeleton import LARGEST_CONSTANT

__all__ = ["WORTH_LIFTING", "InlineWeights", "lift", "splice"]

WORTH_LIFTING = 1 << 24
"""The weights of models with at least this many bytes stay where they are; parsing a smaller model takes no time."""

_LARGE = 8 * LARGEST_CONSTANT + 1
"""Initializers of at least this many bytes stay. They have more elements than a rule may read."""

_VALUES = frozenset({3, 4, 5, 6, 7, RAW_DATA, 10, 11, 13, 14})
"""The fields of a TensorProto with its values or their location."""


class InlineWeights:
    """A model as bytes or an open file, and the ranges of the weights in it to which references point.

    Attributes:
        window: the bytes or the file.
        path: the path of the file.
    """

    def __init__(self, source: FileIO | bytes, path: Path = Path("model")) -> None:
        self.window = Window(source if isinstance(source, bytes) else source.fileno())
        self.path = path
        self.weights: list[range] = []
        self._source = source
        self._token = os.urandom(16).hex()
        self._status = self._identity()

    @property
    def descriptor(self) -> int:
        """The open file."""
        assert isinstance(self._source, FileIO)
        return self._source.fileno()

    def weight_of(self, tensor: TensorProto) -> range | None:
        """The weight to which a tensor refers; None for any other tensor."""
        for entry in tensor.external_data:
            token, _, number = entry.value.partition(":")
            if entry.key == "checksum" and token == self._token:
                return self.weights[int(number)]
        return None

    def refer(self, weight: range) -> bytes:
        """The TensorProto fields of a reference to a weight."""
        entries = {
            "location": self.path.name,
            "offset": str(weight.start),
            "length": str(len(weight)),
            "checksum": f"{self._token}:{len(self.weights)}",
        }
        self.weights.append(weight)
        tensor = TensorProto(data_location=TensorProto.EXTERNAL)
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=value)
        return tensor.SerializeToString()

    def has_more_references(self, serialized: bytes, count: int) -> bool:
        """Whether a model has more than this many references."""
        return serialized.count(self._token.encode()) > count

    def joined(self, pieces: Iterable[Piece]) -> bytes:
        """The bytes of pieces, weights included."""
        return b"".join(each if isinstance(each, bytes) else self.window.read(each.start, each.stop) for each in pieces)

    def is_unchanged(self) -> bool:
        """Whether the file was not written to since it was opened."""
        return self._identity() == self._status

    def _identity(self) -> tuple[int, int]:
        if isinstance(self._source, bytes):
            return 0, 0
        status = os.fstat(self.descriptor)
        return status.st_size, status.st_mtime_ns


def lift(weights: InlineWeights, least: int = _LARGE) -> bytes | None:
    """The bytes of the model with references instead of initializers of at least `least` bytes.

    None if it has none, or cannot be taken apart: parsing all of it will report any error.
    """
    window = weights.window

    def lifted(tensor: Field) -> list[Piece] | None:
        values = [field for field in window.fields(tensor.value, tensor.end) if field.number in _VALUES]
        if [field.number for field in values] != [RAW_DATA] or values[0].end - values[0].value < least:
            return None
        before, after = window.read(tensor.value, values[0].start), window.read(values[0].end, tensor.end)
        return [before, after, weights.refer(range(values[0].value, values[0].end))]

    try:
        pieces = with_initializers(window, least, lifted)
    except MalformedError:
        return None
    return b"".join(piece for piece in pieces if isinstance(piece, bytes)) if weights.weights else None


def splice(serialized: bytes, weights: InlineWeights) -> list[Piece]:
    """The pieces of a model's file: bytes, and weights in place of references.

    Together they equal what protobuf would write for the model with its weights.
    """
    window = Window(serialized)

    def spliced(field: Field) -> list[Piece] | None:
        tensor = TensorProto.FromString(window.read(field.value, field.end))
        weight = weights.weight_of(tensor)
        if weight is None:
            return None
        after = TensorProto(doc_string=tensor.doc_string, metadata_props=tensor.metadata_props)
        if not tensor.HasField("doc_string"):
            after.ClearField("doc_string")
        for name in ("doc_string", "metadata_props", "external_data", "data_location"):
            tensor.ClearField(name)
        head = varint(RAW_DATA << 3 | LENGTH) + varint(len(weight))
        return [tensor.SerializeToString() + head, weight, after.SerializeToString()]

    pieces = with_initializers(window, 0, spliced)
    if weights.has_more_references(serialized, sum(isinstance(piece, range) for piece in pieces)):
        return [_with_values(ModelProto.FromString(serialized), weights).SerializeToString()]
    return pieces


def _with_values(model: ModelProto, weights: InlineWeights) -> ModelProto:
    """A copy of a model with the weights to which it refers."""
    copy = ModelProto()
    copy.CopyFrom(model)
    for tensor in external_tensors(copy):
        weight = weights.weight_of(tensor)
        if weight is not None:
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
            tensor.raw_data = weights.window.read(weight.start, weight.stop)
    return copy
