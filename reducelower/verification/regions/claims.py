"""What must be shown about two aligned models: claims, each that values of both models are equal."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from reducelower.model.rewrites import Entry
from reducelower.plan import Site
from reducelower.verification.regions.numbering import Numbers
from reducelower.verification.regions.places import Place

__all__ = ["Alignment", "Claim", "Level", "Rewrite"]

Rewrite = tuple[Entry, Mapping[str, str]]
"""What was applied, and the names of the node's values by blank."""


@dataclass
class Level:
    """A graph of the first model, and its counterpart in the second."""

    path: str
    left: Place
    right: Place

    @cached_property
    def computed(self) -> frozenset[int]:
        """The numbers of the values that nodes of the first model compute, and do not only pass on or hold."""
        nodes = [node for node in self.left.holder.node if node.op_type not in ("Identity", "Constant")]
        return frozenset(self.left.numbers[name] for node in nodes for name in node.output if name)

    @cached_property
    def shared(self) -> frozenset[int]:
        """The numbers of the values in this graph that both sides have."""
        return frozenset(_own(self.left.numbers).values()) & frozenset(_own(self.right.numbers).values())


@dataclass
class Claim:
    """That values of the two models are equal, though they are computed differently.

    Attributes:
        pairs: their names, in the first and in the second model; outputs of one node of the first.
        site: what the plan says about it; None without a plan.
        is_output: whether one of them is an output of its graph.
        rewrite: the record of the rewrite, if both sides are what it says (`rewrites`); else None.
        is_same: whether value numbering proves it, and it is claimed only because the plan names it.
    """

    level: Level
    pairs: list[tuple[str, str]]
    site: Site | None = None
    is_output: bool = False
    rewrite: Rewrite | None = None
    is_same: bool = False

    @property
    def is_guess(self) -> bool:
        """Whether only names tell of it."""
        return self.site is None and not self.is_output

    @cached_property
    def named(self) -> Site:
        """The site; without a plan, one made from the node of the first model that computes the value."""
        if self.site is not None:
            return self.site
        level, name = self.level, self.pairs[0][0]
        at = level.left.positions.get(name)
        if at is None:
            return Site(level.path, name, "Identity", "", 0, 0, 0)
        node = level.left.holder.node[at]
        return Site(level.path, node.name or f"{node.op_type}#{at}", node.op_type, "", at, 0, 1)


@dataclass
class Alignment:
    """What two models have in common, and the claims about the rest.

    Attributes:
        claims: in the order of the second model.
        levels: the main graphs, and every pair of inner graphs that differ.
    """

    claims: list[Claim] = field(default_factory=list)
    levels: list[Level] = field(default_factory=list)


def _own(numbers: Numbers) -> Mapping[str, int]:
    return numbers.maps[0] if isinstance(numbers, ChainMap) else numbers
