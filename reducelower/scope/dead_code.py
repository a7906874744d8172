"""Constants that nothing reads any more, and the nodes that only they were computed by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Protocol

from onnx import GraphProto

from reducelower.model.graph import read_by, read_outside_nodes
from reducelower.model.nodelist import Replacement, nodes_of
from reducelower.scope.graph import GraphScope

__all__ = ["Edited", "remove_named", "remove_unused"]


class Edited(Protocol):
    """A graph or function body and what becomes of its nodes."""

    scope: GraphScope
    replaced: dict[int, Replacement]
    sites: dict[int, tuple[str, str]]


_NAME = attrgetter("name")


def remove_unused(edits: Sequence[Edited]) -> None:
    """Remove constants that rewritten nodes read and nothing reads any more, and what only they were computed from."""
    by_scope = {edit.scope: edit for edit in edits}
    wanted = {home: home.released - home.inputs for home in by_scope if home.released}
    computed = {(home, name) for home, names in wanted.items() for name in home.folded & names}
    if not computed:
        still_read = _read_among(wanted, edits) if any(wanted.values()) else wanted
        for home, names in wanted.items():
            _remove(names - still_read[home], home, by_scope[home])
        return
    uses = Counter((edit.scope.home(name), name) for edit in edits for name in _read(edit))
    removed: dict[GraphScope, set[str]] = {}
    open_ones = [(home, name) for home, names in wanted.items() for name in sorted(names)]
    while open_ones:
        home, name = open_ones.pop()
        if uses[home, name]:
            continue
        removed.setdefault(home, set()).add(name)
        if (home, name) not in computed:
            continue
        for read in _remove_computed(name, home, by_scope[home], removed[home]):
            around = home.home(read)
            uses[around, read] -= 1
            if not uses[around, read] and around in by_scope and read not in around.inputs:
                # What a computed constant was computed from goes the same way.
                computed.add((around, read))
                open_ones.append((around, read))
    for home, names in removed.items():
        _remove(names, home, by_scope[home])


def _remove(names: set[str], home: GraphScope, edit: Edited) -> None:
    """Remove initializers and Constant nodes, and what is stated of values that are gone."""
    if not names:
        return
    for name in names & home.constant_nodes.keys():
        index = home.constant_nodes[name][0]
        if index >= 0:
            _remove_node(edit, index)
    if isinstance(home.holder, GraphProto):
        remove_named(home.holder.initializer, names, home.initializers)
    remove_named(home.holder.value_info, names, home.stated_places)
    home.note_removed(names)


def _remove_node(edit: Edited, index: int) -> None:
    edit.replaced[index] = []
    edit.sites.pop(index, None)


def _remove_computed(name: str, home: GraphScope, edit: Edited, removed: Collection[str]) -> list[str]:
    """Remove the node that yields a value, where nothing else that it yields remains; returns what it read."""
    index = home.position(name)
    if index is None or edit.replaced.get(index) == []:
        return []
    node = home.node_list[index]
    if not all(output in removed for output in node.output if output):
        return []
    read = [name for inner in nodes_of(edit.replaced.get(index, [node])) for name in read_by(inner) if name]
    _remove_node(edit, index)
    return read


def _read_among(wanted: Mapping[GraphScope, set[str]], edits: Sequence[Edited]) -> Mapping[GraphScope, set[str]]:
    """Which of some values what is in the model now reads."""
    if len(edits) == 1 and not edits[0].replaced:
        # A model of one graph where no node was replaced: there is no need to go through names one by one.
        scope = edits[0].scope
        names = wanted[scope]
        return {scope: scope.node_list.reading(names) | names.intersection(read_outside_nodes(scope.holder))}
    read: dict[GraphScope, set[str]] = {home: set() for home in wanted}
    names = set().union(*wanted.values())
    for edit in edits:
        for name in filter(names.__contains__, _read(edit)):
            home = edit.scope.home(name)
            if home in read:
                read[home].add(name)
    return read


def _read(edit: Edited) -> Iterator[str]:
    """Every name that a graph or function body reads, as its nodes will be."""
    yield from edit.scope.node_list.read(edit.replaced)
    for replacement in edit.replaced.values():
        if not isinstance(replacement, bytes):
            for inner in replacement:
                yield from read_by(inner)
    yield from read_outside_nodes(edit.scope.holder)


def remove_named(values: Any, names: Collection[str], places: Mapping[str, int] | None = None) -> None:
    """Remove those messages of a repeated field that bear some names.

    Places, if they are known, tell where the messages stand, by name; of like names the last.
    """
    if places is None or len(places) < len(values):
        count = sum(map(names.__contains__, map(_NAME, values))) if names else 0
    else:
        count = sum(map(places.__contains__, names))
    if count == len(values):
        del values[:]
    elif count:
        # Those that go are brought to the end, which moves pointers alone; each removal in between would move the rest.
        values.sort(key=lambda value: value.name in names)
        del values[len(values) - count :]
