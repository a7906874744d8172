"""Constants that nothing reads any more, and the nodes that only they were computed by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from onnx import GraphProto

from reducelower.model.graph import read_by, read_outside_nodes
from reducelower.model.nodelist import Replacement, nodes_of
from reducelower.scope.graph import GraphScope

__all__ = ["Edited", "remove_unused"]


class Edited(Protocol):
    """A graph or function body and what becomes of its nodes."""

    scope: GraphScope
    replaced: dict[int, Replacement]
    sites: dict[int, tuple[str, str]]


_Value: TypeAlias = "tuple[GraphScope, str]"
"""A value by name, with the graph that defines it."""


def remove_unused(
    released: Mapping[GraphScope, Collection[str]], folded: Iterable[_Value], edits: Sequence[Edited]
) -> None:
    """Remove constants that rewritten nodes read and nothing reads any more, and what only they were computed from.

    Args:
        released: by scope, the names of constants that some node ceased to read.
        folded: those that nodes compute rather than state.
        edits: every graph and function body of the model; the main graph first.
    """
    by_scope = {edit.scope: edit for edit in edits}
    open_ones = [(home, name) for home, names in released.items() for name in sorted(names) if home in by_scope]
    if not open_ones:
        return
    computed = set(folded).intersection(open_ones)
    uses = _Uses(edits, None if computed else open_ones)
    removed: dict[GraphScope, set[str]] = {}
    while open_ones:
        home, name = open_ones.pop()
        if uses.count(home, name) or name in home.inputs:
            continue
        removed.setdefault(home, set()).add(name)
        edit = by_scope[home]
        if name in home.constant_nodes:
            index = home.constant_nodes[name][0]
            if index >= 0:
                _remove_node(edit, index)
        elif (home, name) in computed:
            for read in _remove_computed(name, home, edit, removed[home]):
                around = home.home(read)
                if uses.drop(around, read) and around in by_scope:
                    # What a computed constant was computed from goes the same way.
                    computed.add((around, read))
                    open_ones.append((around, read))
    for home, names in removed.items():
        if isinstance(home.holder, GraphProto):
            _remove_named(home.holder.initializer, names)
        _remove_named(home.holder.value_info, names)


def _remove_node(edit: Edited, index: int) -> None:
    edit.replaced[index] = []
    edit.sites.pop(index, None)


def _remove_computed(name: str, home: GraphScope, edit: Edited, removed: Collection[str]) -> list[str]:
    """Remove the node that yields a value, where nothing else that it yields remains; returns what it read."""
    index = home.positions.get(name)
    if index is None or edit.replaced.get(index) == []:
        return []
    node = home.node_list[index]
    if not all(output in removed for output in node.output if output):
        return []
    read = [name for inner in nodes_of(edit.replaced.get(index, [node])) for name in read_by(inner) if name]
    _remove_node(edit, index)
    return read


class _Uses:
    """How often what is in the model now reads each value."""

    def __init__(self, edits: Sequence[Edited], wanted: Collection[_Value] | None) -> None:
        """Count, for some values or for all."""
        self._counts: Counter[_Value] = Counter()
        if wanted is not None and len(edits) == 1 and not edits[0].replaced:
            # A model of one graph where no node was replaced: there is no need to go through names one by one.
            scope = edits[0].scope
            names = {name for _, name in wanted}
            read = scope.node_list.reading(names) | names.intersection(read_outside_nodes(scope.holder))
            self._counts.update((scope, name) for name in read)
            return
        names = {name for _, name in wanted or ()}
        for edit in edits:
            each = _read(edit) if wanted is None else filter(names.__contains__, _read(edit))
            for name in each:
                self._counts[edit.scope.home(name), name] += 1

    def count(self, home: GraphScope, name: str) -> int:
        """How often a value is read."""
        return self._counts[home, name]

    def drop(self, home: GraphScope, name: str) -> bool:
        """Take note that one reader of a value is gone; whether it was the last."""
        self._counts[home, name] -= 1
        return not self._counts[home, name]


def _read(edit: Edited) -> Iterator[str]:
    """Every name that a graph or function body reads, as its nodes will be."""
    yield from edit.scope.node_list.read(edit.replaced)
    for replacement in edit.replaced.values():
        if not isinstance(replacement, bytes):
            for inner in replacement:
                yield from read_by(inner)
    yield from read_outside_nodes(edit.scope.holder)


def _remove_named(values: Any, names: Collection[str]) -> None:
    """Remove those of a repeated field that bear some names."""
    count = sum(value.name in names for value in values) if names else 0
    if count:
        # Those that go are brought to the end, which moves pointers alone; each removal in between would move the rest.
        values.sort(key=lambda value: value.name in names)
        del values[len(values) - count :]
