"""What becomes of the nodes of one graph or function body, kept until everything is known and then put in place."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial

from onnx import AttributeProto, GraphProto, NodeProto, TypeProto

from reducelower.build import copy_marks
from reducelower.names import Names
from reducelower.scope import Scope

__all__ = ["Edit", "Recipe", "Template"]


@dataclass(eq=False)
class Edit:
    """One graph or function body and what becomes of its nodes.

    `replaced` holds, by position of the source node, the nodes that come in its place; the source node itself may be
    among them.
    """

    scope: Scope
    replaced: dict[int, list[NodeProto]] = field(default_factory=dict)
    sites: dict[int, tuple[str, str]] = field(default_factory=dict)

    def splice(self) -> dict[int, tuple[int, int]]:
        """Put replacements in place without moving any other node; positions of sites: first node and count."""
        nodes = self.scope.holder.node
        count = len(nodes)
        if self.scope.added_nodes:
            self.replaced[-1] = self.scope.added_nodes
        if not self.replaced:
            return {index: (index, 1) for index in self.sites}
        # Sorting moves pointers, not messages: new nodes are appended, then every node is given its place.
        places = [index << 20 for index in range(count)]
        removed = 0
        for index, replacement in self.replaced.items():
            source = nodes[index] if index >= 0 else None
            kept = False
            for number, node in enumerate(replacement):
                if node is source:
                    places[index] = (index << 20) + number
                    kept = True
                else:
                    nodes.add().CopyFrom(node)
                    places.append((index << 20) + number)
            if source is not None and not kept:
                places[index] = count << 20
                removed += 1
        # `next` takes a default as its second argument: here the node, whose turn it is and which is not looked at.
        nodes.sort(key=partial(next, iter(places)))
        if removed:
            del nodes[len(nodes) - removed :]
        return self._positions()

    def _positions(self) -> dict[int, tuple[int, int]]:
        positions: dict[int, tuple[int, int]] = {}
        shift = 0
        for index in sorted({*self.replaced, *self.sites}):
            count = len(self.replaced[index]) if index in self.replaced else 1
            if index in self.sites:
                positions[index] = (index + shift, count)
            shift += count - (index >= 0)
        return positions

    def state_types(self, types: Mapping[str, TypeProto]) -> None:
        """Add value_info for new values of a graph."""
        holder = self.scope.holder
        if not types or not isinstance(holder, GraphProto):
            return
        for index in sorted(self.replaced):
            for node in self.replaced[index]:
                for name in node.output:
                    if name in types:
                        stated = holder.value_info.add(name=name)
                        stated.type.CopyFrom(types[name])
                        for dim in stated.type.tensor_type.shape.dim:
                            # Symbols that inference makes up mean nothing outside the body it looked at.
                            if dim.dim_param.startswith("unk__"):
                                dim.Clear()


class Template:
    """What comes in place of a node, to be used again for nodes that are the same up to names.

    Each node is kept as the pieces of its serialized form, with names where they differ from use to use: joining pieces
    and parsing them is several times faster than copying a message and changing its names.

    Attributes:
        label: what the report calls it.
        released: constants the node ceases to read.
    """

    def __init__(
        self,
        label: str,
        nodes: list[NodeProto],
        source: NodeProto,
        derived: list[tuple[str, str, str]],
        released: list[tuple[Scope, str]],
        types: list[tuple[str, TypeProto]],
    ) -> None:
        """Learn from what became of one node.

        Args:
            label: what the report calls it.
            nodes: the nodes that came in its place.
            source: the node as it was.
            derived: names that were derived from its own on the way: stem, tail, name.
            released: constants it ceased to read.
            types: types of the new values that are known.
        """
        self.label = label
        self.released = released
        self._data, self._outputs = source.input[0], list(source.output)
        self._stem = source.name or source.output[0]
        self._derived = derived
        self._types = types
        varying = {self._data, *self._outputs, *(name for _, _, name in derived)} - {""}
        self._last = next(place for place, node in enumerate(nodes) if self._outputs[0] in node.output)
        self._nodes = [_pieces(node, varying, place == self._last) for place, node in enumerate(nodes)]

    def nodes_for(self, node: NodeProto, names: Names) -> tuple[list[NodeProto], list[tuple[str, TypeProto]]]:
        """The nodes that come in place of another node of the kind, and the types of their values."""
        own = node.output
        renamed = {self._data: node.input[0], **dict(zip(self._outputs, own, strict=True))}
        stems = {self._stem: node.name or own[0]}
        for stem, tail, name in self._derived:
            # A replacement of a replacement takes its stem from a name that was itself derived.
            renamed[name] = stems[name] = names.fresh(stems.get(stem, stem), tail)
        coded = {name: _coded(other) for name, other in renamed.items()}
        coded[""] = _coded(node.name)
        made = [
            NodeProto.FromString(b"".join([piece if piece.__class__ is bytes else coded[piece] for piece in pieces]))  # type: ignore[index]
            for pieces in self._nodes
        ]
        if node.doc_string or node.metadata_props:
            copy_marks(node, made[self._last])
        return made, [(renamed[name], known) for name, known in self._types]


def _pieces(node: NodeProto, varying: Collection[str], is_last: bool) -> list[bytes | str]:
    """The serialized form of a node in pieces, names that vary left as names; "" stands for that of the source node."""
    rest = NodeProto()
    rest.CopyFrom(node)
    for field_name in ("input", "output", "name"):
        rest.ClearField(field_name)
    if is_last:
        rest.ClearField("doc_string")
        rest.ClearField("metadata_props")
    pieces: list[bytes | str] = []
    # Field numbers of NodeProto in onnx.proto: input 1, output 2, name 3, each of wire type 2.
    for tag, values in ((b"\x0a", node.input), (b"\x12", node.output), (b"\x1a", [node.name])):
        for value in values:
            if tag == b"\x1a" and is_last:
                value = ""
            elif value not in varying:
                pieces.append(tag + _coded(value))
                continue
            pieces += [tag, value]
    pieces.append(rest.SerializeToString())
    return pieces


def _coded(text: str) -> bytes:
    """A string as protobuf writes it behind its tag: the length as a varint, then UTF-8."""
    data = text.encode()
    length, prefix = len(data), bytearray()
    while length > 127:
        prefix.append(length & 127 | 128)
        length >>= 7
    prefix.append(length)
    return bytes(prefix) + data


@dataclass(frozen=True)
class Recipe:
    """What becomes of a node that changes where it stands, by nothing but its attributes and its constant inputs.

    Attributes:
        label: what the report calls it; empty if the node stays as it is.
        attributes: its attributes afterwards.
        inputs: its inputs from the second on afterwards.
        released: constants it ceases to read.
    """

    label: str
    attributes: list[AttributeProto]
    inputs: list[str]
    released: list[tuple[Scope, str]]
