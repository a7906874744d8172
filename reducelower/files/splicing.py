"""Write a model whose weights are in another file: its own bytes, with theirs in between, copied by the system."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TypeAlias

from onnx import StringStringEntryProto

from reducelower.files.inline import CHILDREN, InlineWeights, Weight
from reducelower.model.wire import LENGTH, Field, Window, varint

__all__ = ["Piece", "length_of", "splice"]

Piece: TypeAlias = "bytes | Weight"

_EXTERNAL_DATA, _DATA_LOCATION = 13, 14
_STATED_LOCATION = varint(_DATA_LOCATION << 3) + b"\0"


def splice(serialized: bytes, weights: InlineWeights) -> list[Piece]:
    """The pieces of a model's file: bytes, and weights in place of the references to them.

    What comes out is what protobuf would have written, had the weights been in the model.

    Args:
        serialized: the model with references, as protobuf writes it.
        weights: what they refer to.
    """
    marks: list[int] = []
    position = serialized.find(weights.mark)
    while position >= 0:
        marks.append(position)
        position = serialized.find(weights.mark, position + 1)
    return _Splicing(serialized, marks, weights).message("Model", 0, len(serialized))


def length_of(pieces: Sequence[Piece]) -> int:
    """How many bytes pieces are together."""
    return sum(piece.end - piece.start if isinstance(piece, Weight) else len(piece) for piece in pieces)


class _Splicing:
    def __init__(self, serialized: bytes, marks: Sequence[int], weights: InlineWeights) -> None:
        self._serialized = serialized
        self._window = Window(serialized)
        self._marks = marks
        self._weights = weights

    def message(self, name: str, start: int, end: int) -> list[Piece]:
        """The pieces of a message."""
        if name == "Tensor":
            return self._tensor(start, end)
        pieces: list[Piece] = []
        copied = start
        children = CHILDREN[name]
        for field in self._window.fields(start, end, len(self._weights.mark)):
            child = children.get(field.number)
            if child is None or field.kind != LENGTH or not self._is_marked(field):
                continue
            inside = self.message(child, field.value, field.end)
            head = varint(field.number << 3 | LENGTH) + varint(length_of(inside))
            pieces += [self._serialized[copied : field.start], head, *inside]
            copied = field.end
        pieces.append(self._serialized[copied:end])
        return pieces

    def _is_marked(self, field: Field) -> bool:
        next_mark = bisect_left(self._marks, field.value)
        return next_mark < len(self._marks) and self._marks[next_mark] < field.end

    def _tensor(self, start: int, end: int) -> list[Piece]:
        fields = list(self._window.fields(start, end))
        entries = [
            StringStringEntryProto.FromString(self._serialized[field.value : field.end])
            for field in fields
            if field.number == _EXTERNAL_DATA
        ]
        weight = next(filter(None, map(self._weights.weight_of, entries)), None)
        if weight is None:
            return [self._serialized[start:end]]
        kept = [field for field in fields if field.number not in (_EXTERNAL_DATA, _DATA_LOCATION)]
        before = b"".join(self._serialized[f.start : f.end] for f in kept if f.number < weight.field)
        head = varint(weight.field << 3 | LENGTH) + varint(weight.end - weight.start)
        between = b"".join(self._serialized[f.start : f.end] for f in kept if weight.field < f.number < _DATA_LOCATION)
        after = b"".join(self._serialized[f.start : f.end] for f in kept if f.number > _DATA_LOCATION)
        location = _STATED_LOCATION if weight.states_location else b""
        return [before + head, weight, between + location + after]
