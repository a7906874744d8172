"""What several rewrites compute from the same values stands once, where the first of them needs it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from onnx import NodeProto

from reducelower.legalization.tidying import is_repeatable, kind_of, rename_read
from reducelower.model.nodelist import nodes_of

if TYPE_CHECKING:
    from collections.abc import Hashable

    from reducelower.legalization.edits import Edit

__all__ = ["share"]


def share(edit: Edit) -> None:
    """Let later rewrites of a graph read what earlier ones compute, in place of computing it again."""
    known: dict[Hashable, NodeProto] = {}
    originals = {index: edit.scope.node_list[index] for index in sorted(edit.shareable)}
    readers = Counter(name for node in originals.values() for name in set(node.input))
    for index, original in originals.items():
        outputs = set(original.output)
        own = {name for name in original.input if readers[name] == 1}  # no other rewrite reads them
        instead: dict[str, str] = {}
        kept = []
        for node in nodes_of(edit.replaced.get(index, ())):
            rename_read(node, instead)
            if not own.isdisjoint(node.input):
                own.update(node.output)
            elif outputs.isdisjoint(node.output) and is_repeatable(node):
                first = known.setdefault(kind_of(node), node)
                if first is not node:
                    instead.update(zip(node.output, first.output, strict=True))
                    continue
            kept.append(node)
        if instead:
            edit.replaced[index] = kept
            _forget(edit, index, instead)


def _forget(edit: Edit, index: int, names: dict[str, str]) -> None:
    """Drop the types of values that are no longer made."""
    stated = edit.types.get(index, {})
    edit.types[index] = {name: value_type for name, value_type in stated.items() if name not in names}
