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
        shareable: the nodes whose rewrites may compute the same values as other rewrites.
        zeros: the outcomes that ask at run time whether a dimension is zero, or assume that none is.
        applied: each node as read, with its outcomes in order; None if they are not recorded.
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
        """Note the outcome for a node, and add its label to earlier labels of the node."""
        if outcome.zeros:
            self.zeros[index] = outcome
        if self.applied is not None:
            self.applied.setdefault(index, []).append((read, outcome))
        if outcome.label:
            before = self.sites.get(index)
            label = outcome.label if before is None else f"{before[1]}; {outcome.label}"
            self.sites[index] = outcome.op_type, label

    def splice(self) -> None:
        """Apply the replacements and state the types of new values. Splice the subgraphs of the nodes first."""
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
