"""Leave large weights in the model's own file instead of reading them.

In the model that the engine sees, a large tensor refers to its place in the file, as ONNX external data does (location,
offset, length). Such a model is valid, and onnxruntime can run it from the model's folder. Copying, moving or removing
a tensor includes its reference. When the model is written, references become bytes again (see `splice`).

The ``checksum`` entry distinguishes references from real external data: it holds a random number drawn when the file is
read, so no model can contain such a reference.
"""

from __future__ import annotations

import math
import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from io import FileIO
from pathlib import Path
from typing import TypeAlias

from onnx import StringStringEntryProto, TensorProto

from reducelower.model.wire import LENGTH, Field, MalformedError, Window, varint

__all__ = ["CHILDREN", "InlineWeights", "Piece", "Weight", "length_of", "lift", "splice"]

_LARGE = 1 << 19
"""Tensors of at least this many bytes stay in the file; the engine reads the values of smaller ones, such as axes."""

_DEEPEST = 100
"""The deepest nesting of messages that protobuf reads."""

CHILDREN: Mapping[str, Mapping[int, str]] = {
    "Model": {7: "Graph", 20: "Training", 25: "Function"},
    "Graph": {1: "Node", 5: "Tensor"},
    "Training": {1: "Graph", 2: "Graph"},
    "Function": {7: "Node", 11: "Attribute"},
    "Node": {5: "Attribute"},
    "Attribute": {5: "Tensor", 6: "Graph", 10: "Tensor", 11: "Graph"},
}
"""Fields of onnx.proto that lead to tensors: message, field number, message inside.

Sparse tensors are left out: the checker reads their indices, and onnxruntime does not load them from other files.
"""

_TENSOR_OF_ATTRIBUTE = 5

_DATA_TYPE, _RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION = 2, 9, 13, 14

# Packed numbers that lie in the file as raw data would: field, and the element types whose values it holds.
_AS_RAW = {4: (TensorProto.FLOAT, TensorProto.COMPLEX64), 10: (TensorProto.DOUBLE, TensorProto.COMPLEX128)}
_VALUES = frozenset({4, 5, 6, 7, _RAW_DATA, 10, 11})
_VARINT = 0


@dataclass(frozen=True)
class Weight:
    """The values of one tensor in a file.

    Attributes:
        field: number of the TensorProto field that holds them.
        start, end: their range in the file.
        states_location: whether the tensor states the default ``data_location: DEFAULT``.
    """

    field: int
    start: int
    end: int
    states_location: bool


Piece: TypeAlias = "bytes | Weight"
"""A part of a model's file: bytes, or a range to copy from another file."""


class InlineWeights:
    """An open model file, and the weights in it to which references point."""

    def __init__(self, path: Path, file: FileIO) -> None:
        self.path = path
        self.weights: list[Weight] = []
        self._file = file
        self._token = os.urandom(16).hex()
        self._status = self._identity()

    @property
    def descriptor(self) -> int:
        """The open file."""
        return self._file.fileno()

    @property
    def mark(self) -> bytes:
        """The random number in every reference."""
        return self._token.encode()

    def owns(self, tensor: TensorProto) -> bool:
        """Whether a tensor refers to a weight of this file."""
        return any(self.weight_of(entry) is not None for entry in tensor.external_data)

    def weight_of(self, entry: StringStringEntryProto) -> Weight | None:
        """The weight to which an external data entry refers, if the entry is the one with the number."""
        token, _, number = entry.value.partition(":")
        return self.weights[int(number)] if entry.key == "checksum" and token == self._token else None

    def refer(self, weight: Weight) -> bytes:
        """The TensorProto fields of a reference to a weight."""
        entries = {
            "location": self.path.name,
            "offset": str(weight.start),
            "length": str(weight.end - weight.start),
            "checksum": f"{self._token}:{len(self.weights)}",
        }
        self.weights.append(weight)
        tensor = TensorProto(data_location=TensorProto.EXTERNAL)
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=value)
        return tensor.SerializeToString()

    def is_unchanged(self) -> bool:
        """Whether the file was not written to since it was opened."""
        return self._identity() == self._status

    def _identity(self) -> tuple[int, int]:
        status = os.fstat(self._file.fileno())
        return status.st_size, status.st_mtime_ns


def lift(weights: InlineWeights) -> bytes:
    """The bytes of the model in a file, with references instead of large tensors.

    Raises:
        MalformedError: the file cannot be taken apart; parsing all of it tells what is wrong, if anything is.
    """
    window = Window(weights.descriptor)

    def is_whole(name: str, start: int, end: int) -> bool:
        # The tensor field of an attribute may occur several times; protobuf would merge the parts.
        tensors = (field.number == _TENSOR_OF_ATTRIBUTE for field in window.fields(start, end))
        return name != "Attribute" or sum(tensors) <= 1

    pieces = _changed(window, ("Model", 0, window.size), _LARGE, is_whole, partial(_lifted, window, weights))
    return (
        window.read(0, window.size)
        if pieces is None
        else b"".join(piece for piece in pieces if isinstance(piece, bytes))
    )


def splice(serialized: bytes, weights: InlineWeights) -> list[Piece]:
    """The pieces of a model's file: bytes, and weights in place of references.

    Together they are what protobuf would have written for the model with its weights.
    """
    window, mark = Window(serialized), weights.mark
    marks = [found.start() for found in re.finditer(re.escape(mark), serialized)]

    def is_marked(name: str, start: int, end: int) -> bool:
        following = bisect_left(marks, start)
        return following < len(marks) and marks[following] < end

    pieces = _changed(window, ("Model", 0, len(serialized)), len(mark), is_marked, partial(_spliced, window, weights))
    return [serialized] if pieces is None else pieces


def length_of(pieces: Iterable[Piece]) -> int:
    """The total size of the pieces in bytes."""
    return sum(piece.end - piece.start if isinstance(piece, Weight) else len(piece) for piece in pieces)


def _changed(
    window: Window,
    message: tuple[str, int, int],
    least: int,
    enters: Callable[[str, int, int], bool],
    change: Callable[[int, int], list[Piece] | None],
    depth: int = 0,
) -> list[Piece] | None:
    """The pieces of a message in which tensors are changed; None if none is.

    Fields shorter than `least`, and messages that `enters` rejects, are not searched. Tensors for which `change`
    returns None stay.
    """
    name, start, end = message
    if depth > _DEEPEST:
        raise MalformedError("messages too deep inside each other")
    if not enters(name, start, end):
        return None
    if name == "Tensor":
        return change(start, end)
    pieces: list[Piece] = []
    copied = start
    for field in window.fields(start, end, least):
        child = CHILDREN[name].get(field.number)
        if child is None or field.kind != LENGTH:
            continue
        inside = _changed(window, (child, field.value, field.end), least, enters, change, depth + 1)
        if inside is None:
            continue
        head = varint(field.number << 3 | LENGTH) + varint(length_of(inside))
        pieces += [window.read(copied, field.start), head, *inside]
        copied = field.end
    return [*pieces, window.read(copied, end)] if pieces else None


def _lifted(window: Window, weights: InlineWeights, start: int, end: int) -> list[Piece] | None:
    """A tensor with a reference instead of its values, if these are large."""
    fields = list(window.fields(start, end))
    held = [field for field in fields if field.number in _VALUES]
    if len(held) != 1 or not _can_stay(window, held[0], fields):
        return None
    (values,) = held
    weight = Weight(values.number, values.value, values.end, any(f.number == _DATA_LOCATION for f in fields))
    return [window.read(start, values.start), window.read(values.end, end), weights.refer(weight)]


def _can_stay(window: Window, values: Field, fields: list[Field]) -> bool:
    """Whether a tensor is simple enough to be external data."""
    if values.kind != LENGTH or values.end - values.value < _LARGE:
        return False
    if any(field.number == _EXTERNAL_DATA for field in fields):
        return False
    if any(location != TensorProto.DEFAULT for location in _numbers(window, _DATA_LOCATION, fields)):
        return False
    element_types = _numbers(window, _DATA_TYPE, fields)
    if len(element_types) != 1:
        return False
    return values.number == _RAW_DATA or element_types[0] in _AS_RAW.get(values.number, ())


def _numbers(window: Window, number: int, fields: list[Field]) -> list[int]:
    """The values of a field that holds small integers; -1 stands for anything else."""
    found = []
    for field in fields:
        if field.number == number:
            plain = field.kind == _VARINT and field.end == field.value + 1
            found.append(window.read(field.value, field.end)[0] if plain else -1)
    return found


def _spliced(window: Window, weights: InlineWeights, start: int, end: int) -> list[Piece] | None:
    """A tensor with its values instead of a reference, if it has one."""
    fields = list(window.fields(start, end))
    entries = [
        StringStringEntryProto.FromString(window.read(field.value, field.end))
        for field in fields
        if field.number == _EXTERNAL_DATA
    ]
    weight = next(filter(None, map(weights.weight_of, entries)), None)
    if weight is None:
        return None
    location = varint(_DATA_LOCATION << 3) + b"\0" if weight.states_location else b""
    head = varint(weight.field << 3 | LENGTH) + varint(weight.end - weight.start)

    def between(low: float, high: float) -> bytes:
        return b"".join(window.read(f.start, f.end) for f in fields if low < f.number < high)

    after = between(weight.field, _EXTERNAL_DATA) + location + between(_DATA_LOCATION, math.inf)
    return [between(0, weight.field) + head, weight, after]
