"""Edits of one graph or function body, collected first and applied at the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from onnx import GraphProto

from reducelower.errors import Refusal
from reducelower.model.nodelist import Replacement, nodes_of
from reducelower.model.value_info import state
from reducelower.scope.graph import GraphScope

if TYPE_CHECKING:
    from reducelower.legalization.memo.outcome import Outcome
    from reducelower.legalization.memo.reading import ReadNode

__all__ = ["Edit"]


@dataclass(eq=False)
class Edit:
    """The edits of one graph or function body, by node position.

    Attributes:
        replaced: the nodes that replace a node, which may include the node itself.
        sites: operator and label of each rewrite.
        regions: the positions of all nodes that a rewrite stands for, if it stands for several.
        types: serialized types of new values by name, to be stated.
        refused: why a node cannot be legalized.
        shareable: the nodes whose rewrites may compute what others compute too.
        zeros: the outcomes that ask at run time for dimensions of size zero, or assume that there are none.
        applied: what each node had and what came in its place, in order; None if nobody wants to know.
    """

    scope: GraphScope
    replaced: dict[int, Replacement] = field(default_factory=dict)
    sites: dict[int, tuple[str, str]] = field(default_factory=dict)
    regions: dict[int, tuple[int, ...]] = field(default_factory=dict)
    types: dict[int, Mapping[str, bytes]] = field(default_factory=dict)
    refused: dict[int, Refusal] = field(default_factory=dict)
    shareable: set[int] = field(default_factory=set)
    zeros: dict[int, Outcome] = field(default_factory=dict)
    applied: dict[int, list[tuple[ReadNode | None, Outcome]]] | None = None

    def refuse(self, index: int, node: str, op_type: str, reason: str, hint: str) -> None:
        """Record why a node cannot be legalized; only the first reason counts."""
        name = node or f"{op_type}#{index}"
        self.refused.setdefault(index, Refusal(self.scope.path, name, op_type, reason, hint))

    def note(self, index: int, read: ReadNode | None, outcome: Outcome) -> None:
        """Note the outcome for a node; its label is added to those that the node has already."""
        if outcome.zeros:
            self.zeros[index] = outcome
        if self.applied is not None:
            self.applied.setdefault(index, []).append((read, outcome))
        if outcome.label:
            before = self.sites.get(index)
            label = outcome.label if before is None else f"{before[1]}; {outcome.label}"
            self.sites[index] = outcome.op_type, label

    def splice(self) -> None:
        """Apply the replacements and state the types of new values.

        The subgraphs of its nodes have to be spliced before.
        """
        for work in self.scope.deferred:
            work()
        if isinstance(self.scope.edited, GraphProto):
            for index in sorted(self.types):
                state(self.scope.edited, self.types[index])
        if self.scope.added_nodes:
            self.replaced[-1] = self.scope.added_nodes
        self.scope.node_list.splice(self.replaced)

    def positions(self) -> dict[int, tuple[int, int]]:
        """Position of the first new node and number of new nodes, by site, after the splice."""
        positions: dict[int, tuple[int, int]] = {}
        shift = 0
        for index in sorted({*self.replaced, *self.sites}):
            count = len(nodes_of(self.replaced[index])) if index in self.replaced else 1
            if index in self.sites:
                positions[index] = (index + shift, count)
            shift += count - (index >= 0)
        return positions
