"""What a run did, or would do: every rewritten site, every refusal."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from reducelower.errors import Refusal
from reducelower.target import Target

__all__ = ["Plan", "Site"]


@dataclass(frozen=True)
class Site:
    """One source node together with what stands in its place.

    Attributes:
        graph: graph path of the node, such as ``graph/If_3.then_branch`` or ``functions/local::norm``.
        node: name of the node, or ``ReduceSum#4`` (operator and position) where it has none.
        op_type: operator type of the source node.
        rule: name of what answered, such as ``axes attribute to input`` or ``stable/ReduceL2``.
        index: position of the source node among the nodes of its graph.
        first: position, in the converted graph, of the first node that stands in its place.
        count: how many nodes stand in its place.
    """

    graph: str
    node: str
    op_type: str
    rule: str
    index: int
    first: int
    count: int


@dataclass(frozen=True)
class Plan:
    """What happened to a model: rewritten sites, nodes carried over as they are, and refusals.

    Attributes:
        source_opset: opset version of the default domain before.
        target: what the model was made legal for; its opset is never None here.
        sites: every rewritten node, in graph order.
        refusals: every reason why there is no output; empty when there is one.
        carried: how many nodes stayed untouched.
        ir_version: IR version before and after.
        notes: sentences about the model as a whole that a user should read.
    """

    source_opset: int
    target: Target
    sites: tuple[Site, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    carried: int = 0
    ir_version: tuple[int, int] = (0, 0)
    notes: tuple[str, ...] = field(default=())

    @property
    def changes_nothing(self) -> bool:
        """Whether the model is legal as it is."""
        return not (
            self.sites
            or self.refusals
            or self.source_opset != self.target.opset
            or self.ir_version[0] != self.ir_version[1]
        )

    @property
    def rewritten(self) -> Counter[tuple[str, str]]:
        """How many sites each (operator type, rule) answered for."""
        return Counter((site.op_type, site.rule) for site in self.sites)
