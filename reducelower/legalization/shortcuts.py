"""Doing what is known to the commonest nodes without even taking them apart, to many of them at once.

The common form is a node with at most two inputs and one output, no name empty and none longer than 127 bytes. Its
first bytes then are names, each with one byte for the tag and one for the length, and the second input and what stands
behind the names tell its kind. Nodes of one kind whose names end at the same places differ in a few ranges of bytes,
and what comes in their place is written as one format that these ranges go into.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TypeAlias

from reducelower.legalization.templates import SerializedNode, Template, picking
from reducelower.model.census import INPUT, NAME, OUTPUT
from reducelower.model.nodelist import Replacement
from reducelower.scope.scope import Scope

__all__ = ["Shortcuts"]

_Layout: TypeAlias = tuple[int, int, int, int]
"""Where in a node its first input, all inputs, the output and the name end."""

_UNCOMMON = 128
"""A length that takes more than one byte."""


@dataclass(frozen=True, slots=True)
class _Shortcut:
    """What to do to nodes of one kind, with data of one type or of any.

    Attributes:
        template: what is known.
        second_input: the field of the second input as it becomes; empty where there is none.
        rest: what comes behind the names; None where other nodes come in the place of these.
        found: positions of nodes in whose place others are to come, by their layout.
    """

    template: Template
    second_input: bytes
    rest: bytes | None
    found: dict[_Layout, list[int]]


_Shortcuts: TypeAlias = dict[bytes, dict[bytes | None, _Shortcut]]
"""By kind, and by the type of the data, as `Scope.type_at_hand` gives it, or None where any will do."""


class Shortcuts:
    """What to do to nodes of the common form in one graph or function body."""

    def __init__(
        self,
        scope: Scope,
        replaced: dict[int, Replacement],
        types: dict[int, bytes],
        sites: dict[int, tuple[str, str]],
    ) -> None:
        """Begin with none.

        Args:
            scope: where the nodes stand.
            replaced: takes up what comes in the place of nodes.
            types: takes up what the graph is to state of the values that yields.
            sites: takes up what was done, operator and label.
        """
        self._scope = scope
        self._replaced = replaced
        self._types = types
        self._sites = sites
        # Templates for nodes that have a name are not for those that have none.
        self._of_named: _Shortcuts = {}
        self._of_nameless: _Shortcuts = {}

    def walk(self, positions: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        """Do what is known to nodes at some positions; nobody has edited them yet.

        Yields:
            Position and bytes of the other nodes. One may be learned from before the next is asked for.
        """
        nodes, sites = self._scope.node_list, self._sites
        original, overwrite = nodes.original, nodes.overwrite
        of_named, of_nameless, type_at_hand = self._of_named, self._of_nameless, self._scope.type_at_hand
        for index in positions:
            data = original(index)
            try:
                first = data[1]
                lengths = first or _UNCOMMON
                first_end = inputs_end = first + 2
                if data[first_end] == INPUT:
                    second = data[first_end + 1]
                    lengths |= second
                    inputs_end += 2 + second
                output = data[inputs_end + 1]
                lengths |= output or _UNCOMMON
                names_end = output_end = inputs_end + 2 + output
                if data[output_end] == NAME:
                    name = data[output_end + 1]
                    lengths |= name or _UNCOMMON
                    names_end += 2 + name
                    by_type = of_named.get(data[first_end:inputs_end] + data[names_end:])
                else:
                    by_type = of_nameless.get(data[first_end:inputs_end] + data[names_end:])
            except IndexError:
                by_type = None
            # The ends are right only where every length is a single byte and every field the one expected.
            if by_type is None or lengths >= _UNCOMMON or data[0] != INPUT or data[inputs_end] != OUTPUT:
                yield index, data
                continue
            found = by_type.get(None) or by_type.get(type_at_hand(data[2:first_end].decode()))
            if found is None:
                yield index, data
            elif found.rest is None:
                found.found[first_end, inputs_end, output_end, names_end].append(index)
            else:
                overwrite(index, data[:first_end] + found.second_input + data[inputs_end:names_end] + found.rest)
                sites[index] = found.template.site
        for shortcut in [
            each for kinds in (of_named, of_nameless) for kind in kinds.values() for each in kind.values()
        ]:
            for layout, indexes in shortcut.found.items():
                if self._replace(indexes, layout, shortcut.template):
                    sites.update(dict.fromkeys(indexes, shortcut.template.site))
                else:
                    yield from ((index, original(index)) for index in indexes)

    def _replace(self, indexes: Sequence[int], layout: _Layout, template: Template) -> bool:
        """Put others in the place of nodes of one kind; False where their names may be taken, and nothing is done."""
        first_end, inputs_end, output_end, names_end = layout
        ranges = slice(2, first_end), slice(inputs_end + 2, output_end), slice(output_end + 2, names_end)
        stem = 2 if template.has_name else 1
        names = list(map(itemgetter(*ranges), map(self._scope.node_list.original, indexes)))
        stems = [given[stem] for given in names]
        if not template.takes(stems):
            return False
        text, order = template.text(tuple(map(len, (stems[0], *names[0]))))
        pick = picking([stem if place == 0 else place - 1 for place in order])
        self._replaced.update(zip(indexes, map(text.__mod__, map(pick, names)), strict=True))
        if template.states_types:
            self._types.update(zip(indexes, map(template.types, stems), strict=True))
        return True

    def add(self, template: Template, node: SerializedNode, data_type: bytes | None) -> None:
        """Add what is known of a kind of node, where the first of the kind has the common form.

        Args:
            template: what is known.
            node: the first node of the kind.
            data_type: which type of data the template is for, as `Scope.type_at_hand` gives it; None for any.
        """
        if not template.label or len(node.inputs) > 2 or len(node.outputs) != 1 or not template.source_names[1]:
            return
        second_input, rest = b"", None
        if template.in_place:
            becomes = _overwriting(template, node)
            if becomes is None:
                return
            second_input, rest = becomes
        kind = b"".join(bytes([INPUT]) + name for name in node.inputs[1:]) + node.rest
        known = self._of_named if template.has_name else self._of_nameless
        shortcut = _Shortcut(template, second_input, rest, defaultdict(list))
        # A node whose name is set to nothing is learned from as well as one without a name; the first holds.
        known.setdefault(kind, {}).setdefault(data_type, shortcut)


def _overwriting(template: Template, node: SerializedNode) -> tuple[bytes, bytes] | None:
    """The second input and the rest of a node that changed in place; None where more than these changed."""
    pieces = template.nodes[0]
    fields = [(pieces[place], pieces[place + 1]) for place in range(0, len(pieces) - 1, 2)]
    inputs = [tag for tag, _ in fields].count(bytes([INPUT]))
    names = [name for _, name in fields]
    second = [name for name in names[1:inputs] if isinstance(name, bytes)]
    kept = [*template.source_names, *([""] if node.name else [])]
    rest = pieces[-1]
    # All names but the second input have to stay as they are.
    if names[:1] + names[inputs:] == kept and len(second) == inputs - 1 and isinstance(rest, bytes):
        return b"".join(bytes([INPUT]) + name for name in second), rest
    return None
