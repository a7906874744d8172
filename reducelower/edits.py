"""What becomes of the nodes of one graph or function body, kept until everything is known and then put in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onnx import GraphProto, NodeProto, TypeProto

from reducelower.nodelist import SerializedReplacement
from reducelower.scope import Scope
from reducelower.shortcuts import Shortcuts

__all__ = ["Edit"]


@dataclass(eq=False)
class Edit:
    """One graph or function body and what becomes of its nodes.

    `replaced` holds, by position of the source node, the nodes that come in its place; the source node itself may be
    among them.
    """

    scope: Scope
    replaced: dict[int, Sequence[NodeProto]] = field(default_factory=dict)
    sites: dict[int, tuple[str, str]] = field(default_factory=dict)
    shortcuts: Shortcuts = field(init=False)

    def __post_init__(self) -> None:
        self.shortcuts = Shortcuts(self.scope)

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
            count = len(self.replaced[index]) if index in self.replaced else 1
            if index in self.sites:
                positions[index] = (index + shift, count)
            shift += count - (index >= 0)
        return positions

    def state_types(self, types: Mapping[str, TypeProto]) -> None:
        """Add value_info for new values of a graph."""
        holder = self.scope.holder
        if not isinstance(holder, GraphProto):
            return
        for index in sorted(self.replaced):
            replacement = self.replaced[index]
            stated = replacement.types if isinstance(replacement, SerializedReplacement) else _known(replacement, types)
            for name, known in stated:
                value = holder.value_info.add(name=name)
                value.type.CopyFrom(known)
                for dim in value.type.tensor_type.shape.dim:
                    # Symbols that inference makes up mean nothing outside the body it looked at.
                    if dim.dim_param.startswith("unk__"):
                        dim.Clear()


def _known(nodes: Sequence[NodeProto], types: Mapping[str, TypeProto]) -> list[tuple[str, TypeProto]]:
    """The outputs of nodes whose types are known."""
    return [(name, types[name]) for node in nodes for name in node.output if name in types]
