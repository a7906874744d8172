"""What becomes of the nodes of one graph or function body, kept until everything is known and then put in place."""

from __future__ import annotations

from dataclasses import dataclass, field

from onnx import GraphProto

from reducelower.errors import Refusal
from reducelower.model.nodelist import Replacement, count_of
from reducelower.scope.graph import GraphScope

__all__ = ["Edit"]


@dataclass(eq=False)
class Edit:
    """One graph or function body and what becomes of its nodes, by their positions.

    Attributes:
        replaced: the nodes that come in a node's place; itself may be among them.
        sites: what was done: operator and label.
        types: what the graph is to state of the values that come in, as bytes of a GraphProto.
        refused: why a node cannot be made legal.
    """

    scope: GraphScope
    replaced: dict[int, Replacement] = field(default_factory=dict)
    sites: dict[int, tuple[str, str]] = field(default_factory=dict)
    types: dict[int, bytes] = field(default_factory=dict)
    refused: dict[int, Refusal] = field(default_factory=dict)

    def refuse(self, index: int, node: str, op_type: str, reason: str, hint: str) -> None:
        """Note that a node cannot be made legal, the first reason that was found."""
        name = node or f"{op_type}#{index}"
        self.refused.setdefault(index, Refusal(self.scope.path, name, op_type, reason, hint))

    def tell(self, index: int, done: tuple[str, str]) -> None:
        """Note what was done to a node, its operator and a label, beside what was done to it before."""
        before = self.sites.setdefault(index, done)
        if before is not done:
            self.sites[index] = (done[0], f"{before[1]}; {done[1]}")

    def splice(self) -> None:
        """Put replacements in place without moving any other node, and state what is known of new values.

        The graphs inside its nodes have been spliced before.
        """
        for work in self.scope.put_off:
            work()
        if isinstance(self.scope.holder, GraphProto) and self.types:
            self.scope.state_all(b"".join([self.types[index] for index in sorted(self.types)]))
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
