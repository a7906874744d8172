"""Doing to a node what was done to one like it, without finding out again.

Nodes of a large model are few kinds over and over. What became of the first of a kind is kept as pieces of serialized
nodes, with the names left open that differ from node to node; for the others the pieces are joined and parsed, which is
several times faster than editing messages.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import NamedTuple, TypeAlias

from onnx import NodeProto, TypeProto

from reducelower.names import Names
from reducelower.scope import Scope

__all__ = ["Patches", "SerializedNode", "Template", "coded_text", "patch_node", "read_node"]

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


class Patch(NamedTuple):
    """A template for the commonest node: at most two inputs, one output, names shorter than 128 bytes.

    The node keeps its names; what changes is the second input and everything behind the names.
    """

    second_input: bytes
    rest: bytes
    template: Template


Patches: TypeAlias = "dict[tuple[bytes, bytes], Patch]"
"""Patches of one graph, by the field of the second input and by what stands behind the names."""


def patch_node(data: bytes, patches: Patches) -> tuple[bytes, Template] | None:
    """A serialized node with the patch for its kind; None if there is none or the node is not of the common form."""
    try:
        first_end = inputs_end = data[1] + 2
        if data[first_end] == _INPUT:
            inputs_end = first_end + 2 + data[first_end + 1]
        names_end = output_end = inputs_end + 2 + data[inputs_end + 1]
        if data[output_end] == _NAME:
            names_end = output_end + 2 + data[output_end + 1]
        patch = patches.get((data[first_end:inputs_end], data[names_end:]))
    except IndexError:
        return None
    # The ends are right only where every length is a single byte and every field the one expected.
    if (
        patch is None
        or data[0] != _INPUT
        or data[inputs_end] != _OUTPUT
        or max(data[1], data[inputs_end + 1]) > 127
        or (inputs_end > first_end and data[first_end + 1] > 127)
        or (names_end > output_end and data[output_end + 1] > 127)
    ):
        return None
    names = data[inputs_end:names_end]
    return data[:first_end] + patch.second_input + names + patch.rest, patch.template


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
        site: operator of the node, and the label.
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
        self.site = (source.op_type, label)
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

    def add_to(self, patches: Patches, node: SerializedNode) -> None:
        """Add the template as a patch, where the first node of the kind has the common form."""
        pieces = self._nodes[0] if self.in_place and self.label and not self._derived else []
        fields = [(pieces[place], pieces[place + 1]) for place in range(0, len(pieces) - 1, 2)]
        tags = [tag for tag, _ in fields]
        inputs = tags.count(bytes([_INPUT]))
        names = [name for _, name in fields]
        kept = [*self._source_names, *([""] if node.name else [])]
        second = names[1:inputs]
        if len(node.inputs) > 2 or len(node.outputs) != 1 or names[:1] + names[inputs:] != kept:
            return
        if any(isinstance(name, str) for name in second):
            return
        before = b"".join(bytes([_INPUT]) + name for name in node.inputs[1:])
        after = b"".join(bytes([_INPUT]) + name for name in second if isinstance(name, bytes))
        patches[before, node.rest] = Patch(after, bytes(pieces[-1]) if isinstance(pieces[-1], bytes) else b"", self)


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
