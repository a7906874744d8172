"""Doing to a node what was done to one like it, without finding out again.

Nodes of a large model are few kinds over and over. What became of the first of a kind is kept as pieces of serialized
nodes, with the names left open that differ from node to node; for the others the pieces are joined, which is many times
faster than editing messages.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from onnx import NodeProto, TypeProto

from reducelower.model.census import INPUT, NAME, OUTPUT, field_head
from reducelower.model.names import Names
from reducelower.model.value_info import entry, stated
from reducelower.model.wire import varint

__all__ = ["SerializedNode", "Template", "coded_text", "picking", "read_node"]


_NOTHING = b"\0"
"""A name that is empty, with its length in front: an input that is not given, or an output that nobody wants."""


class SerializedNode(NamedTuple):
    """A node as protobuf writes it: its names, each with the length in front, and everything else."""

    inputs: list[bytes]
    outputs: list[bytes]
    name: bytes
    rest: bytes

    def kind(self, edit: Hashable) -> Hashable:
        """What nodes of a graph share that fare alike; the name of the first input may differ, and what it holds."""
        has_first = bool(self.inputs) and self.inputs[0] != _NOTHING
        asked = tuple(output != _NOTHING for output in self.outputs)
        return edit, has_first, tuple(self.inputs[1:]), asked, not self.name, self.rest


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
        source_names: first input and outputs of the node.
        has_name: whether it has a name of its own.
        nodes: what stands in the node's place, each node in pieces, names that vary left as names.
        states_types: whether the graph is to state types of new values.
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
            types: types that are known, by name.
        """
        self.label = label
        self.site = (source.op_type, label)
        self.in_place = in_place
        self.source_names = [source.input[0], *source.output]
        self.has_name = bool(source.name)
        self._names = names
        self._stem = source.name or source.output[0]
        self._derived = derived
        new = {name for _, _, name in derived}
        varying = {*self.source_names, *new} - {""}
        self.nodes = [_pieces(node, varying, source) for node in nodes]
        outputs = (name for node in nodes for name in node.output if name in new)
        self._types = [(name, stated(types[name])) for name in outputs if name in types]
        self.states_types = bool(self._types)
        self._family = ""
        self._tails = self._tails_of_stem()
        self._all_tails = frozenset((self._tails or {}).values())
        self._texts: dict[tuple[int, ...], tuple[bytes, list[int]]] = {}

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

    def replacement(self, node: SerializedNode) -> tuple[bytes, bytes]:
        """What stands in the place of another node of the kind, and what the graph is to state of what that yields."""
        names = tuple(map(_text, (node.inputs[0], *node.outputs, node.name or _NOTHING)))
        stem = names[-1] or names[1]
        if not self.takes([stem]):
            return self._with_fresh_names(node, stem)
        given = (stem, *names)
        text, order = self.text(tuple(map(len, given)))
        return text % picking(order)(given), self.types(stem)

    def takes(self, stems: Sequence[bytes]) -> bool:
        """Take the names of new values, if they are but a stem and their tails, for each of some stems.

        Returns:
            False where that cannot be; then none is taken.
        """
        if self._tails is None:
            return False
        return not self._tails or self._names.take(self._family, stems, self._all_tails)

    def types(self, stem: bytes) -> bytes:
        """What the graph is to state of new values whose names are a stem and their tails."""
        tails = self._tails or {}
        return b"".join([entry(stem + tails[name], known) for name, known in self._types])

    def text(self, lengths: tuple[int, ...]) -> tuple[bytes, list[int]]:
        """What stands in the place of other nodes, with blanks for names, where new ones are but a stem and tails.

        Args:
            lengths: the bytes of the stem, then of first input, outputs and name of these nodes.

        Returns:
            The nodes as they stand in a GraphProto, as a format; and which of the names goes into each blank.
        """
        if lengths not in self._texts:
            self._texts[lengths] = self._text_of(lengths)
        return self._texts[lengths]

    def _text_of(self, lengths: tuple[int, ...]) -> tuple[bytes, list[int]]:
        places = {name: place for place, name in enumerate((*self.source_names, ""), start=1)}
        tails = self._tails or {}
        text: list[bytes] = []
        order: list[int] = []
        for pieces in self.nodes:
            parts: list[bytes] = []
            size = 0
            for piece in pieces:
                if isinstance(piece, bytes):
                    size += len(piece)
                    parts.append(_plain(piece))
                    continue
                place = places.get(piece, 0)
                tail = b"" if place else tails[piece]
                length = lengths[place] + len(tail)
                size += len(varint(length)) + length
                parts += [_plain(varint(length)), b"%b", _plain(tail)]
                order.append(place)
            text += [_plain(field_head(size)), *parts]
        return b"".join(text), order

    def _with_fresh_names(self, node: SerializedNode, stem: bytes) -> tuple[bytes, bytes]:
        coded = dict(zip(self.source_names, (node.inputs[0], *node.outputs), strict=True))
        coded[""] = node.name or _NOTHING
        renamed = {self._stem: stem.decode()}
        for before, tail, name in self._derived:
            # A replacement of a replacement takes its stem from a name that was itself derived.
            renamed[name] = self._names.fresh(renamed.get(before, before), tail)
            coded[name] = _coded(renamed[name].encode())
        nodes = [
            b"".join([piece if isinstance(piece, bytes) else coded[piece] for piece in pieces]) for pieces in self.nodes
        ]
        fields = b"".join([field_head(len(data)) + data for data in nodes])
        return fields, b"".join([entry(renamed[name].encode(), known) for name, known in self._types])


def picking(places: Sequence[int]) -> Callable[[tuple[bytes, ...]], Any]:
    """A function that picks what is at some places, for a format to take."""
    # With one place alone, itemgetter would hand out the item rather than a tuple.
    return itemgetter(*places) if len(places) > 1 else lambda given: (given[places[0]],)


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
