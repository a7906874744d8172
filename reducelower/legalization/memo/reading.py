"""Split the bytes of a node into its names and everything else, without parsing it."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from onnx import NodeProto

from reducelower.errors import UnreadableModelError
from reducelower.model.wire import INPUT, LENGTH, NAME, OUTPUT

__all__ = ["ReadNode", "Signature", "read_node"]

_DOC_STRING, _METADATA = 0x32, 0x4A
_LAST = 0x52
"""The highest known tag of NodeProto; unknown fields after the names are left as they are."""

Signature: TypeAlias = "tuple[int, tuple[int, ...], bool]"
"""The shape of a node that decides how it is treated, beside operator and attributes: the number of inputs, the operand
number of each input and output, and whether the node has a name. Operands are numbered in order of appearance; -1 is an
omitted one."""


class ReadNode(NamedTuple):
    """A serialized node, split.

    Attributes:
        names: its distinct operands, inputs before outputs; then its name.
        signature: how the operands are arranged.
        rest: bytes of operator, attributes and domain.
        marks: bytes of doc string and metadata, which go to the node that computes the first output.
    """

    names: list[bytes]
    signature: Signature
    rest: bytes
    marks: bytes


def read_node(data: bytes) -> ReadNode:
    """Split a serialized node.

    Raises:
        UnreadableModelError: its fields are not those of a node.
    """
    try:
        read = _read(data)
    except IndexError:
        read = None
    if read is None:
        # Serializing again puts the fields in the order of their numbers.
        read = _read(NodeProto.FromString(data).SerializeToString())
        if read is None:
            raise UnreadableModelError("a node has fields of another kind than onnx.proto says; the model is damaged")
    return read


def _length(data: bytes, position: int) -> tuple[int, int]:
    """The length at a position, and the position after it."""
    length = data[position]
    position += 1
    if length > 127:
        length &= 127
        shift = 7
        while data[position] > 127:
            length |= (data[position] & 127) << shift
            shift += 7
            position += 1
        length |= data[position] << shift
        position += 1
    return length, position


def _read(data: bytes) -> ReadNode | None:
    """Split a node; None if its fields are not in the order of their numbers."""
    names: list[bytes] = []
    inputs = 0
    name = b""
    position, size = 0, len(data)
    last = INPUT
    while position < size:
        tag = data[position]
        if tag > NAME:
            break
        if tag < last or tag & 7 != LENGTH:
            return None
        last = tag
        length = data[position + 1]
        start = position + 2
        if length > 127:
            length, start = _length(data, position + 1)
        position = start + length
        if tag == INPUT:
            inputs += 1
            names.append(data[start:position])
        elif tag == OUTPUT:
            names.append(data[start:position])
        else:
            name = data[start:position]
    spans = _split_marks(data, position)
    if spans is None:
        return None
    rest, marks = spans
    places: tuple[int, ...] = (
        _ALL_DIFFERENT[len(names)] if len(names) < len(_ALL_DIFFERENT) else tuple(range(len(names)))
    )
    if len(set(names)) < len(names) or b"" in names:
        numbers: dict[bytes, int] = {}
        places = tuple(numbers.setdefault(each, len(numbers)) if each else -1 for each in names)
        names = list(numbers)
    names.append(name)
    return ReadNode(names, (inputs, places, bool(name)), rest, marks)


_ALL_DIFFERENT = [tuple(range(count)) for count in range(16)]
"""The places of operands that are all different, by their number."""


def _split_marks(data: bytes, position: int) -> tuple[bytes, bytes] | None:
    """The bytes after the names, split into those without doc string and metadata, and those two."""
    start, size = position, len(data)
    last = 0
    rest: list[bytes] = []
    marks: list[bytes] = []
    while position < size:
        tag = data[position]
        if tag > _LAST:
            break
        if tag < last or tag & 7 != LENGTH:
            return None
        last = tag
        begin = position
        length = data[position + 1]
        position += 2
        if length > 127:
            length, position = _length(data, begin + 1)
        position += length
        if tag in (_DOC_STRING, _METADATA):
            rest.append(data[start:begin])
            marks.append(data[begin:position])
            start = position
    rest.append(data[start:])
    return b"".join(rest), b"".join(marks)
