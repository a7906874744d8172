"""Remove constants that nothing reads any more, and the nodes that computed only them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import chain, repeat
from operator import attrgetter
from typing import Any, Protocol

from onnx import GraphProto

from reducelower.model.graph import read_by, read_outside_nodes
from reducelower.model.nodelist import Replacement, nodes_of
from reducelower.scope.graph import GraphScope

__all__ = ["Edited", "remove_named", "remove_unused"]


class Edited(Protocol):
    """A graph or function body with the replacements of its nodes."""

    scope: GraphScope
    replaced: dict[int, Replacement]
    sites: dict[int, tuple[str, str]]


_NAME = attrgetter("name")


def remove_unused(edits: Sequence[Edited]) -> None:
    """Remove constants that only rewritten nodes read, and everything that was computed only for them."""
    by_scope = {edit.scope: edit for edit in edits}
    candidates = [(home, name) for home in by_scope for name in sorted(home.released - home.inputs.keys())]
    uses = _uses(edits) if candidates else Counter()
    removed: dict[GraphScope, set[str]] = {}
    while candidates:
        home, name = candidates.pop()
        if uses[home, name]:
            continue
        removed.setdefault(home, set()).add(name)
        for operand in _remove_node(name, home, by_scope[home], removed[home]):
            around = home.home(operand)
            uses[around, operand] -= 1
            if around in by_scope and operand not in around.inputs:
                candidates.append((around, operand))  # it may be unused now as well
    for home, names in removed.items():
        if isinstance(home.edited, GraphProto):
            remove_named(home.edited.initializer, names)
        remove_named(home.edited.value_info, names)
        home.drop_added(names)


def _remove_node(name: str, home: GraphScope, edit: Edited, removed: Collection[str]) -> list[str]:
    """Remove the node that computes a value, unless another of its outputs remains; return the names that it read."""
    index = home.positions.get(name) if home.initializer(name) is None else None
    if index is None or edit.replaced.get(index) == []:
        return []
    node = home.node_list[index]
    if not all(output in removed for output in node.output if output):
        return []
    read = [name for inner in nodes_of(edit.replaced.get(index, [node])) for name in read_by(inner) if name]
    edit.replaced[index] = []
    edit.sites.pop(index, None)
    return read


def _uses(edits: Sequence[Edited]) -> Counter[tuple[GraphScope, str]]:
    """How often each value of the edited model is read."""
    uses: Counter[tuple[GraphScope, str]] = Counter()
    for edit in edits:
        scope = edit.scope
        # Subgraphs that were there before have edits of their own.
        kept = [node.input for index, node in enumerate(scope.node_list) if index not in edit.replaced]
        made = map(read_by, chain.from_iterable(map(nodes_of, edit.replaced.values())))
        read = [*chain.from_iterable(kept), *chain.from_iterable(made), *read_outside_nodes(scope.edited)]
        homes = repeat(scope) if scope.around is None else map(scope.home, read)
        uses.update(zip(homes, read, strict=False))
    return uses


def remove_named(values: Any, names: Collection[str]) -> None:
    """Remove the messages with some names from a repeated field."""
    count = sum(map(names.__contains__, map(_NAME, values))) if names else 0
    if count == len(values):
        del values[:]
    elif count:
        # Sorting them to the end moves pointers only; removing each in place would move all that follow.
        values.sort(key=lambda value: value.name in names)
        del values[len(values) - count :]
