"""What becomes of the nodes of one graph or function body, kept until everything is known and then put in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onnx import GraphProto, NodeProto, TypeProto

from reducelower.legalization.shortcuts import Shortcuts
from reducelower.model.nodelist import Replacement, count_of
from reducelower.model.value_info import entry, stated
from reducelower.scope.scope import Scope

__all__ = ["Edit"]


@dataclass(eq=False)
class Edit:
    """One graph or function body and what becomes of its nodes.

    Attributes:
        scope: where the nodes stand.
        replaced: by position of the source node, the nodes that come in its place; itself may be among them.
        sites: by position, what was done: operator and label.
        types: by position, what the graph is to state of the values that replacements which are bytes yield.
        shortcuts: what is known to do to the commonest nodes.
    """

    scope: Scope
    replaced: dict[int, Replacement] = field(default_factory=dict)
    sites: dict[int, tuple[str, str]] = field(default_factory=dict)
    types: dict[int, bytes] = field(default_factory=dict)
    shortcuts: Shortcuts = field(init=False)

    def __post_init__(self) -> None:
        self.shortcuts = Shortcuts(self.scope, self.replaced, self.types, self.sites)

    def splice(self) -> None:
        """Put replacements in place without moving any other node."""
        if self.scope.added_nodes:
            self.replaced[-1] = self.scope.added_nodes
        self.scope.node_list.splice(self.replaced)

    def positions(self) -> dict[int, tuple[int, int]]:
        """Where sites are after replacements were put in place: position of the first node, and how many they are."""
        positions: dict[int, tuple[int, int]] = {}
        shift = 0
        for index in sorted({*self.replaced, *self.sites}):
            count = count_of(self.replaced[index]) if index in self.replaced else 1
            if index in self.sites:
                positions[index] = (index + shift, count)
            shift += count - (index >= 0)
        return positions

    def state_types(self, types: Mapping[str, TypeProto]) -> None:
        """Add value_info for new values of a graph."""
        if not isinstance(self.scope.holder, GraphProto) or not (types or self.types):
            return
        entries = []
        for index in sorted(self.replaced):
            nodes = self.replaced[index]
            entries.append(self.types.get(index, b"") if isinstance(nodes, bytes) else _entries(nodes, types))
        self.scope.holder.MergeFromString(b"".join(entries))


def _entries(nodes: Sequence[NodeProto], types: Mapping[str, TypeProto]) -> bytes:
    """What is to be stated of the outputs of nodes whose types are known."""
    known = [name for node in nodes for name in node.output if name in types]
    return b"".join([entry(name.encode(), stated(types[name])) for name in known])
