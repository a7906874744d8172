"""Protobuf's wire format, as far as it takes to find large fields in a file without reading them.

A message is a stream of fields, each a tag and a value; strings, bytes, messages and packed numbers are preceded by
their length (https://protobuf.dev/programming-guides/encoding).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["LENGTH", "CutShortError", "Field", "MalformedError", "Window", "varint"]

LENGTH = 2
"""Wire type of fields whose value is preceded by its length."""

_VARINT, _FIXED64, _FIXED32 = 0, 1, 5

_LONGEST_HEAD = 20
"""Bytes of the longest tag and length."""

_SHORT, _LONG = 1 << 12, 1 << 20


class MalformedError(ValueError):
    """These bytes are no message, or use what this reader does not know, such as groups."""


class CutShortError(MalformedError):
    """The bytes end in the middle of a field."""


class Field(NamedTuple):
    """Where a field lies: from `start` its tag, from `value` its value, which goes up to `end`."""

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
    """Reads a file, or bytes, here and there: little around jumps, much where fields follow each other.

    A file is read rather than mapped: it may become shorter meanwhile, and what is mapped counts as memory in use.
    """

    def __init__(self, source: int | bytes) -> None:
        """Look at an open file, by its descriptor, or at bytes."""
        self._source = source
        self._buffer = source if isinstance(source, bytes) else b""
        self._start = 0
        self._chunk = _SHORT
        self.size = len(source) if isinstance(source, bytes) else os.fstat(source).st_size

    def read(self, start: int, end: int) -> bytes:
        """The bytes of a range.

        Raises:
            MalformedError: the file ends before.
        """
        if isinstance(self._source, bytes):
            return self._source[start:end]
        parts = []
        while start < end:
            part = os.pread(self._source, end - start, start)
            if not part:
                raise CutShortError("the file became shorter")
            parts.append(part)
            start += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def fields(self, start: int, end: int, least: int = 0) -> Iterator[Field]:
        """The fields of the message in a range, in order.

        Fields whose value is shorter than `least` are left out.

        Raises:
            MalformedError: the range holds no message.
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
                raise CutShortError("a field that ends after its message")
            if after - value >= least:
                yield Field(number, kind, position, value, after)
            position = after

    def _load(self, position: int) -> int:
        """Bring the bytes at a position into the buffer; returns where in it they begin."""
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
            raise CutShortError("an integer without an end") from None
        raise MalformedError("an integer of more than 64 bits")
