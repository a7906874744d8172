"""What must be shown about two aligned models: claims, each that values of both models are equal.

A claim may be a rewrite that the plan has recorded: a node, and in its place the nodes that should replace it. Both
sides of the rewrite are numbered from the values that the node reads. If they get the numbers of the claimed values,
these are equal wherever the rewrite is right, and nothing else that the engine did has to be trusted. A node that
stays, but whose operator has another page at the new version, is a rewrite to itself.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from reducelower.model.graph import may_hold_graphs, node_label
from reducelower.numerics.measure import Array, identical
from reducelower.plan import Site
from reducelower.rewrites import Applied, Entry
from reducelower.verification.regions.numbering import Numbers, Table, captured, inside
from reducelower.verification.regions.places import Place

__all__ = ["Alignment", "Claim", "Level", "Rewrites"]


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
        entry: the rewrite that both sides are (`Rewrites`); None if they are none.
        names: the names in the first model by the blanks of the rewrite.
        operands: the blanks of what the rewrite reads, except constants that it asked for.
        is_same: whether value numbering proves it, and it is claimed only because the plan names it.
    """

    level: Level
    pairs: list[tuple[str, str]]
    site: Site | None = None
    is_output: bool = False
    entry: Entry | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    operands: Sequence[str] = ()
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
        return Site(level.path, node_label(node, at), node.op_type, "", at, 0, 1)


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


class Rewrites:
    """The rewrites of a plan, except those of nodes that were rewritten more than once."""

    def __init__(self, applied: Sequence[Applied] | None) -> None:
        """Take the record of what was applied; None if there is none."""
        self.are_known = applied is not None
        self._by_place: dict[tuple[str, int], Applied | None] = {}
        for each in applied or ():
            place = each.graph, each.index
            is_again = place in self._by_place
            self._by_place[place] = None if is_again else each

    def note(self, claim: Claim, computed: Mapping[str, int], table: Table) -> None:
        """Add to a claim whether its two sides are the same, or else the rewrite that they are, if they are one.

        Args:
            claim: values, all of one node of the first model.
            computed: the numbers of the values of the second model, as it computes them.
            table: gives the numbers.
        """
        left, right = claim.level.left, claim.level.right
        at = left.positions.get(claim.pairs[0][0]) if self.are_known else None
        if at is None:
            return
        claim.is_same = all(left.numbers[name] == computed[other] for name, other in claim.pairs)
        found, node = self._by_place.get((claim.level.path, at)), left.holder.node[at]
        if found is None or found.entry is None:
            made = dict(zip(node.output, table.add(node, inside(left.numbers), right.opsets), strict=True))
            if not may_hold_graphs(node) and all(made[name] == computed[other] for name, other in claim.pairs):
                claim.operands = [*dict.fromkeys(filter(None, node.input))]
                claim.names = {name: name for name in (*node.input, *node.output)}
                claim.entry = Entry(node, (node,), (0, 0), {}, {}, ())  # it stays
            return
        entry, names = found.entry, found.names or {}
        known = {part: left.numbers[name] for part, name in names.items() if name in left.numbers}
        numbers: Numbers = dict(known)
        if not all(_is(left, names[part], value) for part, value in entry.constants.items()):
            return
        table.add(entry.node, numbers, left.opsets)
        if numbers != known:
            return  # it is about another node, which stood there before a change to the whole model
        for name, tensor in entry.added.items():
            numbers[name] = table.constant(tensor)
        for node in entry.nodes:
            table.add(node, numbers, right.opsets)
        made = {name: numbers[part] for part, name in names.items()}
        if all(made.get(name) == computed[other] for name, other in claim.pairs):
            read = (part for part in captured([entry.node, *entry.nodes]) if part not in entry.added)
            operands = [part for part in read if part not in entry.constants]
            if names.keys() >= set(operands):  # one may read another value
                claim.entry, claim.names, claim.operands = entry, names, operands


def _is(place: Place, name: str, value: Array) -> bool:
    """Whether a value is a constant or computed from constants, and equals this one."""
    known = place.evaluated(name)
    return known is not None and identical(known, value)
