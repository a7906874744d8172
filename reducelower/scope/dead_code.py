"""Remove constants that are no longer read, and the nodes that computed only them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
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
    wanted = {home: home.released - home.inputs for home in by_scope if home.released}
    computed = {(home, name) for home, names in wanted.items() for name in home.computed & names}
    if not computed:
        still_read = _read_among(wanted, edits) if any(wanted.values()) else wanted
        for home, names in wanted.items():
            _remove(names - still_read[home], home, by_scope[home])
        return
    uses: Counter[tuple[GraphScope, str]] = Counter()
    for edit in edits:
        read = [*_read(edit)]
        uses.update(zip(map(edit.scope.home, read), read, strict=True))
    removed: dict[GraphScope, set[str]] = {}
    open_ones = [(home, name) for home, names in wanted.items() for name in sorted(names)]
    while open_ones:
        home, name = open_ones.pop()
        if uses[home, name]:
            continue
        removed.setdefault(home, set()).add(name)
        if (home, name) not in computed:
            continue
        for given in _remove_computed(name, home, by_scope[home], removed[home]):
            around = home.home(given)
            uses[around, given] -= 1
            if not uses[around, given] and around in by_scope and given not in around.inputs:
                # The inputs of a removed node may be unused now as well.
                computed.add((around, given))
                open_ones.append((around, given))
    for home, names in removed.items():
        _remove(names, home, by_scope[home])


def _remove(names: set[str], home: GraphScope, edit: Edited) -> None:
    """Remove initializers and Constant nodes, and the stated types of removed values."""
    if not names:
        return
    for name in names:
        index = home.node_list.position(name)
        if index is not None and home.constants.node(name) is not None:
            _remove_node(edit, index)
    if isinstance(home.holder, GraphProto):
        remove_named(home.holder.initializer, names, home.constants.places)
    remove_named(home.holder.value_info, names, home.stated.places)
    home.drop_positions(names)


def _remove_node(edit: Edited, index: int) -> None:
    edit.replaced[index] = []
    edit.sites.pop(index, None)


def _remove_computed(name: str, home: GraphScope, edit: Edited, removed: Collection[str]) -> list[str]:
    """Remove the node that computes a value, unless another output of it remains; return what it read."""
    index = home.node_list.position(name)
    if index is None or edit.replaced.get(index) == []:
        return []
    node = home.node_list[index]
    if not all(output in removed for output in node.output if output):
        return []
    read = [name for inner in nodes_of(edit.replaced.get(index, [node])) for name in read_by(inner) if name]
    _remove_node(edit, index)
    return read


def _read_among(wanted: Mapping[GraphScope, set[str]], edits: Sequence[Edited]) -> Mapping[GraphScope, set[str]]:
    """The values, out of those given, that the edited model still reads."""
    if len(edits) == 1 and not edits[0].replaced:
        # A model of one graph without replacements: no need to go through names one by one.
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
    """Every name that the edited graph or function body reads."""
    made = [inner for nodes in edit.replaced.values() if not isinstance(nodes, bytes) for inner in nodes]
    read = edit.scope.node_list.read(edit.replaced), *map(read_by, made), read_outside_nodes(edit.scope.holder)
    return chain.from_iterable(read)


def remove_named(values: Any, names: Collection[str], places: Mapping[str, int] | None = None) -> None:
    """Remove the messages with some names from a repeated field.

    `places`, if given, maps names to positions; of equal names it has the last.
    """
    if places is None or len(places) < len(values):
        count = sum(map(names.__contains__, map(_NAME, values))) if names else 0
    else:
        count = sum(map(places.__contains__, names))
    if count == len(values):
        del values[:]
    elif count:
        # Move them to the end first, which moves pointers only; removing each in place would move all that follow.
        values.sort(key=lambda value: value.name in names)
        del values[len(values) - count :]
