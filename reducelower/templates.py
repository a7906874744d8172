"""Doing to a node what was done to one like it, without finding out again.

Nodes of a large model are few kinds over and over. What became of the first of a kind is kept as pieces of serialized
nodes, with the names left open that differ from node to node; for the others the pieces are joined, which is many times
faster than editing messages.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from operator import itemgetter
from typing import Any, NamedTuple

from onnx import NodeProto, TypeProto

from reducelower.census import INPUT, NAME, OUTPUT, field_head
from reducelower.names import Names
from reducelower.nodelist import SerializedReplacement
from reducelower.scope import Scope
from reducelower.wire import varint

__all__ = ["SerializedNode", "Template", "coded_text", "read_node"]


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
        if tag not in (INPUT, OUTPUT, NAME):
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
        if tag == INPUT:
            inputs.append(data[start:position])
        elif tag == OUTPUT:
            outputs.append(data[start:position])
        else:
            name = data[start:position]
    return SerializedNode(inputs, outputs, name, data[position:])


def _coded(name: bytes) -> bytes:
    """A name as protobuf writes it behind its tag: the length, then UTF-8."""
    return varint(len(name)) + name


def coded_text(coded: bytes) -> str:
    """The string of a coded name."""
    return _text(coded).decode()


def _text(coded: bytes) -> bytes:
    start = 0
    while coded[start] > 127:
        start += 1
    return coded[start + 1 :]


class Template:
    """What came of one node, to be used again for nodes of the same kind.

    Attributes:
        label: what the report calls it; empty if nothing changed.
        site: operator of the node, and the label.
        in_place: whether the node itself changed, so that one node takes its place.
        released: constants the node ceases to read.
        nodes: what stands in the node's place, each node in pieces, names that vary left as names.
    """

    def __init__(
        self,
        label: str,
        nodes: list[NodeProto],
        source: NodeProto,
        names: Names,
        *,
        in_place: bool,
        derived: list[tuple[str, str, str]],
        released: list[tuple[Scope, str]],
        types: Mapping[str, TypeProto],
    ) -> None:
        """Learn from what became of a node.

        Args:
            label: what the report calls it.
            nodes: what stands in the node's place.
            source: the node as it was.
            names: gives out fresh names.
            in_place: whether the node itself changed.
            derived: names that were derived from its own on the way: stem, tail, name.
            released: constants it ceased to read.
            types: types that are known, by name.
        """
        self.label = label
        self.site = (source.op_type, label)
        self.in_place = in_place
        self.released = released
        self.source_names = [source.input[0], *source.output]
        self.has_name = bool(source.name)
        self._names = names
        self._stem = source.name or source.output[0]
        self._derived = derived
        new = {name for _, _, name in derived}
        varying = {*self.source_names, *new} - {""}
        self.nodes = [_pieces(node, varying, source) for node in nodes]
        outputs = (name for node in nodes for name in node.output if name in new)
        self._types = [(name, types[name]) for name in outputs if name in types]
        self._family = ""
        self._tails = self._tails_of_stem()
        self._all_tails = frozenset((self._tails or {}).values())
        self._count = len(nodes)
        self._formats: dict[Hashable, tuple[bytes, Callable[[tuple[bytes, ...]], Any]]] = {}

    def _tails_of_stem(self) -> dict[str, bytes] | None:
        """What follows the stem in each derived name, where that is all there is to them."""
        tails = {self._stem: ""}
        for stem, tail, name in self._derived:
            if stem not in tails or name != stem + tail:
                return None
            tails[name] = tails[stem] + tail
        del tails[self._stem]
        self._family = self._names.family(tails.values())
        return {name: tail.encode() for name, tail in tails.items()} if self._family or not tails else None

    def replacement(self, node: SerializedNode) -> SerializedReplacement:
        """What stands in the place of another node of the kind."""
        stem = _text(node.name or b"\0") or _text(node.outputs[0])
        name = node.name or b"\0"  # a name that is set, to nothing
        given = (stem, node.inputs[0], *node.outputs, name)
        return self.replacement_of(given, tuple(map(len, given))) or self._with_fresh_names(node, stem)

    def replacement_of(self, given: tuple[bytes, ...], lengths: Hashable) -> SerializedReplacement | None:
        """What stands in the place of another node, if new names are but its stem and their tails.

        Args:
            given: what the names of new values begin with; then first input, outputs and name of the node, each with
                the length in front.
            lengths: what tells how long each of them is: a number in which all lengths have their bits, or all of them.
        """
        tails, stem = self._tails, given[0]
        if tails is None or (tails and not self._names.take(self._family, stem, self._all_tails)):
            return None
        known = self._formats.get(lengths)
        if known is None:
            known = self._formats[lengths] = self._format(tuple(map(len, given)), tails)
        text, order = known
        if not self._types:
            return SerializedReplacement(text % order(given), self._count)
        types = [((stem + tails[name]).decode(), found) for name, found in self._types]
        return SerializedReplacement(text % order(given), self._count, types)

    def _format(
        self, lengths: tuple[int, ...], tails: Mapping[str, bytes]
    ) -> tuple[bytes, Callable[[tuple[bytes, ...]], Any]]:
        """The nodes with blanks for what is given, where that is of some lengths, and the order in which it goes in."""
        places = {name: place for place, name in enumerate((*self.source_names, ""), start=1)}
        text: list[bytes] = []
        order: list[int] = []
        for pieces in self.nodes:
            parts: list[bytes] = []
            size = 0
            for piece in pieces:
                if isinstance(piece, bytes):
                    size += len(piece)
                    parts.append(_plain(piece))
                elif piece in places:
                    size += lengths[places[piece]]
                    parts.append(b"%b")
                    order.append(places[piece])
                else:
                    length = lengths[0] + len(tails[piece])
                    size += len(varint(length)) + length
                    parts += [_plain(varint(length)), b"%b", _plain(tails[piece])]
                    order.append(0)
            text += [_plain(field_head(size)), *parts]
        # With one index alone, itemgetter would hand out the item rather than a tuple.
        pick = itemgetter(*order) if len(order) > 1 else lambda given: (given[order[0]],)
        return b"".join(text), pick

    def _with_fresh_names(self, node: SerializedNode, stem: bytes) -> SerializedReplacement:
        coded = dict(zip(self.source_names, (node.inputs[0], *node.outputs), strict=True))
        coded[""] = node.name or b"\0"
        renamed = {self._stem: stem.decode()}
        for before, tail, name in self._derived:
            # A replacement of a replacement takes its stem from a name that was itself derived.
            renamed[name] = self._names.fresh(renamed.get(before, before), tail)
            coded[name] = _coded(renamed[name].encode())
        nodes = [
            b"".join([piece if isinstance(piece, bytes) else coded[piece] for piece in pieces]) for pieces in self.nodes
        ]
        fields = b"".join([field_head(len(data)) + data for data in nodes])
        return SerializedReplacement(fields, len(nodes), [(renamed[name], known) for name, known in self._types])


def _plain(text: bytes) -> bytes:
    """Text in a format that stands for itself."""
    return text.replace(b"%", b"%%")


def _pieces(node: NodeProto, varying: Collection[str], source: NodeProto) -> list[bytes | str]:
    """The serialized form of a node in pieces, names that vary left as names; "" stands for that of the source node."""
    read = read_node(node.SerializeToString())
    pieces: list[bytes | str] = []
    for tag, values in ((INPUT, read.inputs), (OUTPUT, read.outputs)):
        for value in values:
            text = coded_text(value)
            pieces += [bytes([tag]), text if text in varying else value]
    if read.name:
        text = coded_text(read.name)
        is_marked = source.output[0] in node.output
        pieces += [bytes([NAME]), "" if is_marked else text if text in varying else read.name]
    pieces.append(read.rest)
    return pieces
