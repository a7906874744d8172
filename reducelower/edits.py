"""What becomes of the nodes of one graph or function body, kept until everything is known and then put in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onnx import GraphProto, NodeProto, TypeProto

from reducelower.nodelist import Replacement, count_of
from reducelower.scope import Scope
from reducelower.shortcuts import Shortcuts

__all__ = ["Edit"]


@dataclass(eq=False)
class Edit:
    """One graph or function body and what becomes of its nodes.

    Attributes:
        scope: where the nodes stand.
        replaced: by position of the source node, the nodes that come in its place; itself may be among them.
        sites: by position, what was done: operator and label.
        types: by position, names and types of what replacements that are bytes yield, as far as the graph states them.
        shortcuts: what is known to do to the commonest nodes.
    """

    scope: Scope
    replaced: dict[int, Replacement] = field(default_factory=dict)
    sites: dict[int, tuple[str, str]] = field(default_factory=dict)
    types: dict[int, list[tuple[str, TypeProto]]] = field(default_factory=dict)
    shortcuts: Shortcuts = field(init=False)

    def __post_init__(self) -> None:
        self.shortcuts = Shortcuts(self.scope, self.replaced, self.sites)

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
        holder = self.scope.holder
        if not isinstance(holder, GraphProto):
            return
        for index in sorted(self.replaced) if types or self.types else ():
            nodes = self.replaced[index]
            for name, known in self.types.get(index, ()) if isinstance(nodes, bytes) else _known(nodes, types):
                value = holder.value_info.add(name=name)
                value.type.CopyFrom(known)
                for dim in value.type.tensor_type.shape.dim:
                    # Symbols that inference makes up mean nothing outside the body it looked at.
                    if dim.dim_param.startswith("unk__"):
                        dim.Clear()


def _known(nodes: Sequence[NodeProto], types: Mapping[str, TypeProto]) -> list[tuple[str, TypeProto]]:
    """The outputs of nodes whose types are known."""
    return [(name, types[name]) for node in nodes for name in node.output if name in types]
