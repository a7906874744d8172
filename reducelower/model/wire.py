"""Enough of protobuf's wire format to find large fields in a file without reading them, and to write small ones.

A message is a sequence of fields, each a tag and a value. The length of strings, bytes, messages and packed numbers
precedes them (https://protobuf.dev/programming-guides/encoding).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

__all__ = [
    "INPUT",
    "LENGTH",
    "NAME",
    "OUTPUT",
    "Field",
    "MalformedError",
    "Window",
    "field_head",
    "varint",
]

INPUT, OUTPUT, NAME = 0x0A, 0x12, 0x1A
"""The tags of the first fields of NodeProto, as protobuf writes them."""

LENGTH = 2
"""Wire type of length-delimited fields."""

_VARINT, _FIXED64, _FIXED32 = 0, 1, 5

_LONGEST_HEAD = 20
"""The most bytes that tag and length take."""

_SHORT, _LONG = 1 << 12, 1 << 20


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


@cache
def field_head(length: int) -> bytes:
    """Tag and length that precede a node of `length` bytes in a GraphProto."""
    return b"\x0a" + varint(length)


class Window:
    """Buffered random access to a file or bytes: it reads little after a jump, and more while fields are consecutive.

    A file is read, not mapped: it may be truncated meanwhile, and mapped pages count as memory in use.
    """

    def __init__(self, source: int | bytes) -> None:
        """Take the descriptor of an open file, or bytes."""
        self._source = source
        self._buffer = source if isinstance(source, bytes) else b""
        self._start = 0
        self._chunk = _SHORT
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
            offset = position - self._start
            if not 0 <= offset <= len(self._buffer) - _LONGEST_HEAD:
                offset = self._load(position)
            tag, offset = self._varint(offset)
            number, kind = tag >> 3, tag & 7
            if kind == LENGTH:
                length, offset = self._varint(offset)
                value = self._start + offset
                after = value + length
            else:
                value = self._start + offset
                if kind == _VARINT:
                    _, offset = self._varint(offset)
                    after = self._start + offset
                elif kind in (_FIXED32, _FIXED64):
                    after = value + (4 if kind == _FIXED32 else 8)
                else:
                    raise MalformedError(f"wire type {kind}")
            if not number:
                raise MalformedError("a field without a number")
            if after > end:
                raise MalformedError("a field that ends after its message")
            if after - value >= least:
                yield Field(number, kind, position, value, after)
            position = after

    def _load(self, position: int) -> int:
        """Load the bytes at a position into the buffer; return their offset in it."""
        if isinstance(self._source, bytes):
            return position
        follows = 0 <= position - self._start <= len(self._buffer)
        self._chunk = min(4 * self._chunk, _LONG) if follows else _SHORT
        self._buffer = os.pread(self._source, self._chunk, position)
        self._start = position
        return 0

    def _varint(self, offset: int) -> tuple[int, int]:
        buffer = self._buffer
        try:
            byte = buffer[offset]
            if byte < 128:
                return byte, offset + 1
            number, shift = byte & 127, 7
            while shift < 64:
                offset += 1
                byte = buffer[offset]
                number |= (byte & 127) << shift
                if byte < 128:
                    return number, offset + 1
                shift += 7
        except IndexError:
            raise MalformedError("an integer without an end") from None
        raise MalformedError("an integer of more than 64 bits")
