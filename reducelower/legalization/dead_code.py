"""Remove what only rewritten nodes read, and the nodes that computed only that."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

from reducelower.legalization.edits import Edit
from reducelower.legalization.nodelist import inputs_of, nodes_of, reads_of
from reducelower.model.graph import read_by, read_outside_nodes
from reducelower.scope.graph import GraphScope

__all__ = ["remove_named", "remove_unused"]

_NAME, _DROPS = attrgetter("name"), attrgetter("drops_operands")


def remove_unused(edits: Sequence[Edit]) -> None:
    """Remove what a rewritten node read and nothing reads any more, and everything that was computed only for it.

    The inputs of a graph stay.
    """
    if not any(map(_DROPS, edits)):
        return
    by_scope = {edit.scope: edit for edit in edits}
    uses: dict[GraphScope, Counter[bytes]] = defaultdict(Counter)
    no_longer_read: list[tuple[GraphScope, str]] = []
    for scope, edit in by_scope.items():
        before, after = _changed_reads(edit)
        no_longer_read += [(scope.home(name), name) for name in map(bytes.decode, {*before} - {*after, b""})]
        counts = Counter(edit.nodes.source.reads)
        counts.subtract(before)
        counts.update(after)
        counts.update(map(str.encode, read_outside_nodes(scope.edited)))
        if scope.around is None:
            uses[scope].update(counts)
            continue
        for read, count in counts.items():
            uses[scope.home(read.decode())][read] += count
    removed: dict[GraphScope, set[str]] = {}
    while no_longer_read:
        home, name = no_longer_read.pop()
        if home not in by_scope or uses[home][name.encode()] or name in home.inputs or name in removed.get(home, ()):
            continue
        removed.setdefault(home, set()).add(name)
        for operand in _remove_node(name, home, by_scope[home], removed[home]):
            around = home.home(operand)
            uses[around][operand.encode()] -= 1
            no_longer_read.append((around, operand))
    for home, names in removed.items():
        remove_named(home.edited.initializer, names)
        if any(map(home.states, names)):
            remove_named(home.edited.value_info, names)


def _changed_reads(edit: Edit) -> tuple[Sequence[bytes], Sequence[bytes]]:
    """What rewritten nodes of a graph read before and what they read now; once for each time."""
    nodes = edit.nodes
    edited = nodes.touched - edit.replaced.keys()  # the subgraphs that they had before have edits of their own
    before = inputs_of(map(nodes.source.data.__getitem__, edited.union(edit.replaced)))
    return before, [*inputs_of(map(nodes.serialized, edited)), *reads_of(chain.from_iterable(edit.replaced.values()))]


def _remove_node(name: str, home: GraphScope, edit: Edit, removed: Collection[str]) -> list[str]:
    """Remove the node that computes a value, unless another of its outputs remains; return the names that it read."""
    index = None if home.initializer(name) is not None else home.positions.get(name)
    if index is None:
        return []
    node = edit.nodes[index]
    if not all(output in removed for output in node.output if output):
        return []
    read = [name for inner in nodes_of(edit.replaced.get(index, [node])) for name in read_by(inner) if name]
    edit.replaced[index] = []
    edit.sites.pop(index, None)
    return read


def remove_named(values: Any, names: Collection[str]) -> None:
    """Remove the messages with some names from a repeated field."""
    count = sum(map(names.__contains__, map(_NAME, values))) if names else 0
    if count == len(values):
        del values[:]
    elif count:
        # Sorting them to the end moves pointers only; removing each in place would move all that follow.
        values.sort(key=lambda value: value.name in names)
        del values[len(values) - count :]
