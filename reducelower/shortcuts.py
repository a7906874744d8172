"""Doing what is known to the commonest nodes without even taking them apart: a few slices and one look-up each.

The common form is a node with at most two inputs and one output, every name shorter than 128 bytes and none empty. Its
first bytes then are names, each with one byte for the tag and one for the length, and the second input and what stands
behind the names tell its kind.
"""

from __future__ import annotations

from typing import NamedTuple

from reducelower.nodelist import SerializedReplacement
from reducelower.scope import Scope
from reducelower.templates import SerializedNode, Template

__all__ = ["Shortcuts"]

# Tags of NodeProto.input, output and name.
_INPUT, _OUTPUT, _NAME = 0x0A, 0x12, 0x1A


class _Patch(NamedTuple):
    """How a node changes that keeps its first input, output and name."""

    second_input: bytes
    rest: bytes


class _Shortcut(NamedTuple):
    """What to do to nodes of one kind.

    Attributes:
        template: what is known.
        patch: how nodes change; None where others come in their place.
        of_stated_type: whether the template is only for data of a type that is not at hand.
    """

    template: Template
    patch: _Patch | None
    needs_no_type_at_hand: bool


class Shortcuts:
    """What to do to nodes of the common form in one graph or function body."""

    def __init__(self, scope: Scope) -> None:
        """Begin with none."""
        self._scope = scope
        self._known: dict[bytes, _Shortcut] = {}

    def apply(self, data: bytes) -> tuple[bytes | SerializedReplacement, Template] | None:
        """What becomes of a serialized node: other bytes, or other nodes; None if no shortcut is for it."""
        try:
            first_end = inputs_end = data[1] + 2
            if data[first_end] == _INPUT:
                inputs_end = first_end + 2 + data[first_end + 1]
            names_end = output_end = inputs_end + 2 + data[inputs_end + 1]
            if data[output_end] == _NAME:
                names_end = output_end + 2 + data[output_end + 1]
            found = self._known.get(data[first_end:inputs_end] + data[names_end:])
        except IndexError:
            return None
        # The ends are right only where every length is a single byte and every field the one expected.
        if (
            found is None
            or data[0] != _INPUT
            or data[inputs_end] != _OUTPUT
            or max(data[1], data[inputs_end + 1]) > 127
            or (inputs_end > first_end and data[first_end + 1] > 127)
            or (names_end > output_end and not 0 < data[output_end + 1] <= 127)
        ):
            return None
        template, patch, needs_no_type_at_hand = found
        if needs_no_type_at_hand and self._scope.has_type_at_hand(data[2:first_end].decode()):
            return None
        if patch is not None:
            return data[:first_end] + patch.second_input + data[inputs_end:names_end] + patch.rest, template
        has_name = names_end > output_end
        if has_name != template.has_name:
            return None
        stem = data[output_end + 2 : names_end] if has_name else data[inputs_end + 2 : output_end]
        name = data[output_end + 1 : names_end] if has_name else b"\0"
        made = template.replacement_of(stem, data[1:first_end], data[inputs_end + 1 : output_end], name)
        return None if made is None else (made, template)

    def add(self, template: Template, node: SerializedNode, *, needs_no_type_at_hand: bool) -> None:
        """Add what is known of a kind of node, where the first of the kind has the common form.

        Args:
            template: what is known.
            node: the first node of the kind.
            needs_no_type_at_hand: whether the template is only for data of a type that is not at hand.
        """
        if not template.label or len(node.inputs) > 2 or len(node.outputs) != 1:
            return
        patch = _patch(template, node) if template.in_place else None
        if patch is not None or not template.in_place:
            second_input = b"".join(bytes([_INPUT]) + name for name in node.inputs[1:])
            self._known[second_input + node.rest] = _Shortcut(template, patch, needs_no_type_at_hand)


def _patch(template: Template, node: SerializedNode) -> _Patch | None:
    """The template as a patch, if all names but the second input stay as they are."""
    pieces = template.nodes[0]
    fields = [(pieces[place], pieces[place + 1]) for place in range(0, len(pieces) - 1, 2)]
    inputs = [tag for tag, _ in fields].count(bytes([_INPUT]))
    names = [name for _, name in fields]
    second = [name for name in names[1:inputs] if isinstance(name, bytes)]
    kept = [*template.source_names, *([""] if node.name else [])]
    rest = pieces[-1]
    if names[:1] + names[inputs:] != kept or len(second) < inputs - 1 or not isinstance(rest, bytes):
        return None
    return _Patch(b"".join(bytes([_INPUT]) + name for name in second), rest)
