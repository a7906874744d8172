"""Compute what several nodes need once, where the first of them needs it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from onnx import NodeProto

from reducelower.legalization.dead_code import as_messages
from reducelower.legalization.tidying import is_repeatable, kind_of, rename_read

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from reducelower.legalization.edits import Edit
    from reducelower.scope.graph import GraphScope

__all__ = ["share"]


def share(edit: Edit) -> bool:
    """Let later rewrites of a graph read what earlier ones compute, in place of computing it again.

    Rewrites also read the first of equal values of the source: PyTorch's exporter computes the tables of each
    RotaryEmbedding again. Returns whether the others may be unused now.
    """
    shareable = {at: each for at, each in edit.rewrites.items() if each.outcome is not None and each.outcome.may_share}
    if not shareable:
        return False
    originals = {index: edit.scope.holder.node[index] for index in shareable}
    equal = _equal(edit.scope, (name for node in originals.values() for name in node.input[1:]))
    readers = Counter(equal.get(name, name) for node in originals.values() for name in set(node.input))
    first_of_kind: dict[Hashable, NodeProto] = {}
    for index, rewrite in shareable.items():
        original = originals[index]
        outputs = set(original.output)
        # No other rewrite reads them.
        unshared = {name for name in original.input if readers[equal.get(name, name)] == 1}
        renamed = dict(equal)
        kept = []
        for node in as_messages(rewrite.nodes):
            rename_read(node, renamed)
            sizes = _sizes_asked(node, original, edit.scope)
            if not sizes and not unshared.isdisjoint(node.input):
                unshared.update(node.output)
            elif outputs.isdisjoint(node.output) and is_repeatable(node):
                first = first_of_kind.setdefault(sizes or kind_of(node), node)
                if first is not node:
                    renamed.update(zip(node.output, first.output, strict=True))
                    continue
            kept.append(node)
        if renamed:
            types = {name: value_type for name, value_type in rewrite.types.items() if name not in renamed}
            edit.rewrites[index] = rewrite._replace(nodes=kept, types=types)
    edit.drops_operands |= bool(equal)
    return bool(equal)


def _sizes_asked(node: NodeProto, original: NodeProto, graph: GraphScope) -> Hashable:
    """A key that is equal for Shapes of operands of the same sizes, known by name at least; None for other nodes."""
    if node.op_type != "Shape" or node.attribute or node.input[0] not in original.input:
        return None
    shape = graph.known(node.input[0]).shape
    return None if shape is None else ("Shape", shape)


def _equal(graph: GraphScope, names: Iterable[str]) -> Mapping[str, str]:
    """Values of a graph that other values are equal to, since equal nodes compute both: the first by the others."""
    first: dict[Hashable, str] = {}
    equal: dict[str, str] = {}
    for name in dict.fromkeys(names):
        producer = graph.producer(name)
        if producer is None or len(producer.output) != 1 or not is_repeatable(producer):
            continue
        same = first.setdefault(kind_of(producer), name)
        if same != name:
            equal[name] = same
    return equal
