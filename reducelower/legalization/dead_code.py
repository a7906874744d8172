"""Remove what only rewritten nodes read, and the nodes that computed only that."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

from onnx import GraphProto, NodeProto

from reducelower.legalization.edits import REMOVED, Edit
from reducelower.model.columns import graph_of, message_class
from reducelower.model.graph import read_by, read_outside_nodes
from reducelower.scope.graph import GraphScope

__all__ = ["as_messages", "remove_named", "remove_unused"]

_DROPS, _NAME, _NODES = attrgetter("drops_operands"), attrgetter("name"), attrgetter("nodes")


def as_messages(nodes: Iterable[NodeProto | bytes]) -> list[NodeProto]:
    """Nodes as messages; those that are serialized become copies, and editing these has no effect."""
    return [NodeProto.FromString(node) if isinstance(node, bytes) else node for node in nodes]


def remove_unused(edits: Sequence[Edit]) -> None:
    """Remove what a rewritten node read and nothing reads any more, and everything that was computed only for it.

    The inputs of a graph stay.
    """
    if not any(map(_DROPS, edits)):
        return
    by_scope: dict[GraphScope, Edit] = {}
    uses: dict[GraphScope, Counter[bytes]] = defaultdict(Counter)
    no_longer_read: list[tuple[GraphScope, str]] = []
    for edit in edits:
        scope = edit.scope
        by_scope[scope] = edit
        before = _reads(map(scope.columns.data.__getitem__, edit.rewrites))
        after = _reads(chain.from_iterable(map(_NODES, edit.rewrites.values())))
        no_longer_read += [(scope.home(name), name) for name in map(bytes.decode, {*before} - {*after, b""})]
        counts = Counter(scope.columns.reads)
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
        for operand in _remove_node(name, by_scope[home], removed[home]):
            around = home.home(operand)
            uses[around][operand.encode()] -= 1
            no_longer_read.append((around, operand))
    for home, names in removed.items():
        remove_named(home.edited.initializer, names)
        remove_named(home.edited.value_info, names)


def _reads(nodes: Iterable[NodeProto | bytes]) -> Sequence[bytes]:
    """The names that nodes and their subgraphs read, once for each time."""
    graph = graph_of(nodes)
    as_one = message_class("Graph").FromString(graph).field_1  # without looking at each
    if as_one.field_5.HasField("field_6") or as_one.field_5.HasField("field_11"):
        return [name.encode() for node in GraphProto.FromString(graph).node for name in read_by(node)]
    return as_one.field_1[:]  # type: ignore[no-any-return]


def _remove_node(name: str, edit: Edit, removed: Collection[str]) -> list[str]:
    """Remove the node that computes a value, unless another of its outputs remains; return the names that it read."""
    home = edit.scope
    index = None if home.initializer(name) is not None else home.positions.get(name)
    if index is None:
        return []
    node = home.holder.node[index]
    if not all(output in removed for output in node.output if output):
        return []
    now = as_messages(edit.rewrites[index].nodes) if index in edit.rewrites else [node]
    edit.rewrites[index] = REMOVED
    return [name for each in now for name in read_by(each) if name]


def remove_named(values: Any, names: Collection[str]) -> None:
    """Remove the messages with some names from a repeated field."""
    count = sum(map(names.__contains__, map(_NAME, values))) if names else 0
    if count == len(values):
        del values[:]
    elif count:
        # Sorting them to the end moves pointers only; removing each in place would move all that follow.
        values.sort(key=lambda value: value.name in names)
        del values[len(values) - count :]
