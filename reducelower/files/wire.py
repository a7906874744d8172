"""Enough of protobuf's wire format to find large fields in a file without reading them, and to write small ones.

A message is a sequence of fields, each a tag and a value. The length of strings, bytes, messages and packed numbers
precedes them (https://protobuf.dev/programming-guides/encoding).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

__all__ = [
    "LENGTH",
    "RAW_DATA",
    "Field",
    "MalformedError",
    "Piece",
    "Window",
    "varint",
    "with_initializers",
]

_GRAPH, _INITIALIZER = 7, 5
RAW_DATA = 9
"""The field of TensorProto with its values as bytes."""

Piece: TypeAlias = "bytes | range"
"""A part of a model's file: bytes, or a range to copy from the file with the weights."""

LENGTH = 2
"""Wire type of length-delimited fields."""

_VARINT = 0
_FIXED = {1: 8, 5: 4}
"""The number of bytes of values of the other wire types; groups are not read."""

_LONGEST_HEAD = 20
"""The most bytes that tag and length take."""


class MalformedError(ValueError):
    """The bytes are not a message, or use an unsupported wire type, such as groups."""


class Field(NamedTuple):
    """The place of a field: the tag begins at `start`, the value at `value`, and it ends at `end`."""

    number: int
    kind: int
    start: int
    value: int
    end: int


def varint(number: int) -> bytes:
    """Encode a variable-length integer."""
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


class Window:
    """Random access to a file or bytes, and the fields of messages in it.

    A file is read, not mapped: it may be truncated meanwhile, and mapped pages count as memory in use.
    """

    def __init__(self, source: int | bytes) -> None:
        """Take the descriptor of an open file, or bytes."""
        self._source = source
        self.size = len(source) if isinstance(source, bytes) else os.fstat(source).st_size

    def read(self, start: int, end: int) -> bytes:
        """The bytes of a range.

        Raises:
            MalformedError: the file ends before `end`.
        """
        if isinstance(self._source, bytes):
            return self._source[start:end]
        parts = []
        while start < end:
            part = os.pread(self._source, end - start, start)
            if not part:
                raise MalformedError("the file became shorter")
            parts.append(part)
            start += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def fields(self, start: int, end: int, least: int = 0) -> Iterator[Field]:
        """Yield the fields of the message in a range, in order, without those whose value is shorter than `least`.

        Raises:
            MalformedError: the range does not hold a message.
        """
        position = start
        while position < end:
            head = self.read(position, min(position + _LONGEST_HEAD, end))
            tag, at = _varint(head, 0)
            number, kind = tag >> 3, tag & 7
            if kind == LENGTH:
                size, at = _varint(head, at)
            elif kind == _VARINT:
                size = _varint(head, at)[1] - at
            else:
                size = _FIXED.get(kind, 0)
            if not number or (not size and kind != LENGTH):
                raise MalformedError(f"field {number} of wire type {kind}")
            value = position + at
            after = value + size
            if after > end:
                raise MalformedError("a field that ends after its message")
            if after - value >= least:
                yield Field(number, kind, position, value, after)
            position = after


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The variable-length integer at a position, and the position after it."""
    number = 0
    for shift in range(0, 64, 7):
        if at >= len(data):
            raise MalformedError("an integer without an end")
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
    raise MalformedError("an integer of more than 64 bits")


def with_initializers(window: Window, least: int, change: Callable[[Field], list[Piece] | None]) -> list[Piece]:
    """The pieces of a model with changed initializers; shorter than `least` or with None from `change`, they stay.

    Raises:
        MalformedError: the bytes are not written as protobuf writes a model.
    """
    graphs = [field for field in window.fields(0, window.size) if field.number == _GRAPH]
    if [graph.kind for graph in graphs] != [LENGTH]:
        raise MalformedError("no graph, or one in parts")
    (graph,) = graphs
    inside: list[Piece] = []
    copied = graph.value
    for field in window.fields(graph.value, graph.end, least):
        changed = change(field) if (field.number, field.kind) == (_INITIALIZER, LENGTH) else None
        if changed is not None:
            head = varint(_INITIALIZER << 3 | LENGTH) + varint(sum(map(len, changed)))
            inside += [window.read(copied, field.start), head, *changed]
            copied = field.end
    inside.append(window.read(copied, graph.end))
    head = varint(_GRAPH << 3 | LENGTH) + varint(sum(map(len, inside)))
    return [window.read(0, graph.start), head, *inside, window.read(graph.end, window.size)]
