"""Doing what is known to the commonest nodes without even taking them apart: a few slices and one look-up each.

The common form is a node with at most two inputs and one output, every name shorter than 128 bytes and none empty. Its
first bytes then are names, each with one byte for the tag and one for the length, and the second input and what stands
behind the names tell its kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from onnx import NodeProto

from reducelower.census import INPUT, NAME, OUTPUT
from reducelower.scope import Scope
from reducelower.templates import SerializedNode, Template

__all__ = ["Shortcuts"]


class _Shortcut(NamedTuple):
    """What to do to nodes of one kind.

    Attributes:
        template: what is known.
        second_input: the field of the second input as it becomes; empty where there is none.
        rest: what comes behind the names; None where other nodes come in the place of these.
        needs_no_type_at_hand: whether the template is only for data of a type that is not at hand.
    """

    template: Template
    second_input: bytes
    rest: bytes | None
    needs_no_type_at_hand: bool


class Shortcuts:
    """What to do to nodes of the common form in one graph or function body."""

    def __init__(self, scope: Scope) -> None:
        """Begin with none."""
        self._scope = scope
        self._known: dict[bytes, _Shortcut] = {}

    def walk(
        self,
        positions: Iterable[int],
        replaced: dict[int, Sequence[NodeProto]],
        sites: dict[int, tuple[str, str]],
        released: list[tuple[Scope, str]],
    ) -> Iterator[tuple[int, bytes]]:
        """Do what is known to nodes at some positions, and yield the others: position and bytes.

        Args:
            positions: positions of nodes that nobody has edited yet.
            replaced: takes up what comes in the place of nodes.
            sites: takes up what was done, operator and label.
            released: takes up constants that nodes cease to read.
        """
        nodes, known = self._scope.node_list, self._known
        original, overwrite = nodes.original, nodes.overwrite
        for index in positions:
            data = original(index)
            try:
                lengths = data[1]
                first_end = inputs_end = lengths + 2
                if data[first_end] == INPUT:
                    second = data[first_end + 1]
                    lengths |= second
                    inputs_end += 2 + second
                output = data[inputs_end + 1]
                names_end = output_end = inputs_end + 2 + output
                name = 0
                if data[output_end] == NAME:
                    name = data[output_end + 1]
                    lengths |= name
                    names_end += 2 + name
                found = known.get(data[first_end:inputs_end] + data[names_end:])
            except IndexError:
                found = None
            # The ends are right only where every length is a single byte and every field the one expected.
            if found is None or lengths | output > 127 or data[0] != INPUT or data[inputs_end] != OUTPUT:
                yield index, data
                continue
            template, second_input, rest, needs_no_type_at_hand = found
            if needs_no_type_at_hand and self._scope.has_type_at_hand(data[2:first_end].decode()):
                yield index, data
                continue
            if rest is not None:
                overwrite(index, data[:first_end] + second_input + data[inputs_end:names_end] + rest)
            else:
                # A node without a name says nothing, or that it is empty; templates are told apart by the former.
                coded_output, coded_name = data[inputs_end + 1 : output_end], data[output_end + 1 : names_end] or b"\0"
                stem = coded_name[1:] if template.has_name else coded_output[1:]
                is_like = stem and template.has_name == (names_end > output_end)
                given = (stem, data[1:first_end], coded_output, coded_name)
                made = template.replacement_of(given, first_end << 16 | output << 8 | name) if is_like else None
                if made is None:
                    yield index, data
                    continue
                replaced[index] = made
            sites[index] = template.site
            if template.released:
                released += template.released

    def add(self, template: Template, node: SerializedNode, *, needs_no_type_at_hand: bool) -> None:
        """Add what is known of a kind of node, where the first of the kind has the common form.

        Args:
            template: what is known.
            node: the first node of the kind.
            needs_no_type_at_hand: whether the template is only for data of a type that is not at hand.
        """
        if not template.label or len(node.inputs) > 2 or len(node.outputs) != 1:
            return
        kind = b"".join(bytes([INPUT]) + name for name in node.inputs[1:]) + node.rest
        if not template.in_place:
            self._known[kind] = _Shortcut(template, b"", None, needs_no_type_at_hand)
            return
        pieces = template.nodes[0]
        fields = [(pieces[place], pieces[place + 1]) for place in range(0, len(pieces) - 1, 2)]
        inputs = [tag for tag, _ in fields].count(bytes([INPUT]))
        names = [name for _, name in fields]
        second = [name for name in names[1:inputs] if isinstance(name, bytes)]
        kept = [*template.source_names, *([""] if node.name else [])]
        rest = pieces[-1]
        # All names but the second input have to stay as they are.
        if names[:1] + names[inputs:] == kept and len(second) == inputs - 1 and isinstance(rest, bytes):
            second_input = b"".join(bytes([INPUT]) + name for name in second)
            self._known[kind] = _Shortcut(template, second_input, rest, needs_no_type_at_hand)
