"""Doing to a node what was done to one like it, without finding out again.

Nodes of a large model are few kinds over and over. What became of the first of a kind is kept as pieces of serialized
nodes, with the names left open that differ from node to node; for the others the pieces are joined and parsed, which is
several times faster than editing messages.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import NamedTuple

from onnx import NodeProto, TypeProto

from reducelower.names import Names
from reducelower.scope import Scope

__all__ = ["SerializedNode", "Template", "coded_text", "read_node"]

# Field numbers of NodeProto in onnx.proto: input 1, output 2, name 3. Strings are of wire type 2.
_INPUT, _OUTPUT, _NAME = 0x0A, 0x12, 0x1A


class SerializedNode(NamedTuple):
    """A node as protobuf writes it: its names, each with the length in front, and everything else."""

    inputs: list[bytes]
    outputs: list[bytes]
    name: bytes
    rest: bytes

    def kind(self, edit: Hashable) -> Hashable:
        """What nodes of a graph share that fare alike; the name of the first input may differ, and what it holds."""
        return edit, tuple(self.inputs[1:]), len(self.outputs), not self.name, self.rest


def read_node(data: bytes) -> SerializedNode:
    """Take a serialized node apart; protobuf writes fields in the order of their numbers, names first."""
    inputs: list[bytes] = []
    outputs: list[bytes] = []
    name = b""
    position, size = 0, len(data)
    while position < size:
        tag = data[position]
        if tag not in (_INPUT, _OUTPUT, _NAME):
            break
        start = end = position + 1
        length = data[end]
        end += 1
        if length > 127:
            length &= 127
            shift = 7
            while data[end] > 127:
                length |= (data[end] & 127) << shift
                shift += 7
                end += 1
            length |= data[end] << shift
            end += 1
        position = end + length
        if tag == _INPUT:
            inputs.append(data[start:position])
        elif tag == _OUTPUT:
            outputs.append(data[start:position])
        else:
            name = data[start:position]
    return SerializedNode(inputs, outputs, name, data[position:])


def _coded(text: str) -> bytes:
    """A string as protobuf writes it behind its tag: the length as a varint, then UTF-8."""
    data = text.encode()
    length, prefix = len(data), bytearray()
    while length > 127:
        prefix.append(length & 127 | 128)
        length >>= 7
    prefix.append(length)
    return bytes(prefix) + data


def coded_text(coded: bytes) -> str:
    """The string of a coded name."""
    start = 0
    while coded[start] > 127:
        start += 1
    return coded[start + 1 :].decode()


class Template:
    """What came of one node, to be used again for nodes of the same kind.

    Attributes:
        label: what the report calls it; empty if nothing changed.
        op_type: operator of the node.
        in_place: whether the node itself changed, so that one node takes its place.
        released: constants the node ceases to read.
    """

    def __init__(
        self,
        label: str,
        nodes: list[NodeProto],
        source: NodeProto,
        *,
        in_place: bool,
        derived: list[tuple[str, str, str]],
        released: list[tuple[Scope, str]],
        types: list[tuple[str, TypeProto]],
    ) -> None:
        """Learn from what became of a node.

        Args:
            label: what the report calls it.
            nodes: what stands in the node's place.
            source: the node as it was.
            in_place: whether the node itself changed.
            derived: names that were derived from its own on the way: stem, tail, name.
            released: constants it ceased to read.
            types: types of the new values that are known.
        """
        self.label = label
        self.op_type = source.op_type
        self.in_place = in_place
        self.released = released
        self._source_names = [source.input[0], *source.output]
        self._stem = source.name or source.output[0]
        self._derived = derived
        self._types = types
        varying = {*self._source_names, *(name for _, _, name in derived)} - {""}
        self._nodes = [_pieces(node, varying, source) for node in nodes]

    def serialized_for(self, node: SerializedNode, names: Names) -> tuple[list[bytes], list[tuple[str, TypeProto]]]:
        """What stands in the place of another node of the kind, serialized, and the types of its new values."""
        coded = dict(zip(self._source_names, (node.inputs[0], *node.outputs), strict=True))
        coded[""] = node.name or b"\0"  # a name that is set, to nothing
        types = []
        if self._derived:
            renamed: dict[str, str] = {}
            stems = {self._stem: coded_text(node.name or node.outputs[0])}
            for stem, tail, name in self._derived:
                # A replacement of a replacement takes its stem from a name that was itself derived.
                renamed[name] = stems[name] = names.fresh(stems.get(stem, stem), tail)
                coded[name] = _coded(renamed[name])
            types = [(renamed[name], known) for name, known in self._types]
        made = [
            b"".join([piece if piece.__class__ is bytes else coded[piece] for piece in pieces])  # type: ignore[index]
            for pieces in self._nodes
        ]
        return made, types


def _pieces(node: NodeProto, varying: Collection[str], source: NodeProto) -> list[bytes | str]:
    """The serialized form of a node in pieces, names that vary left as names; "" stands for that of the source node."""
    read = read_node(node.SerializeToString())
    pieces: list[bytes | str] = []
    for tag, values in ((_INPUT, read.inputs), (_OUTPUT, read.outputs)):
        for value in values:
            text = coded_text(value)
            pieces += [bytes([tag]), text if text in varying else value]
    if read.name:
        text = coded_text(read.name)
        is_marked = source.output[0] in node.output
        pieces += [bytes([_NAME]), "" if is_marked else text if text in varying else read.name]
    pieces.append(read.rest)
    return pieces
