"""Finds the recorded rewrites of a plan in both models: a node, and in its place the nodes that should replace it.

Both sides of a rewrite are numbered from the values that the node reads. If they get the numbers of the claimed values,
these are equal wherever the rewrite is right, and nothing else that the engine did has to be trusted. A node that
stays, but whose operator has another page at the new version, is a rewrite to itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reducelower.model.graph import may_hold_graphs
from reducelower.model.rewrites import Applied, Entry
from reducelower.numerics.measure import Array, identical
from reducelower.scope.blanks import blank
from reducelower.verification.regions.claims import Claim, Rewrite
from reducelower.verification.regions.numbering import Numbers, Table, renamed
from reducelower.verification.regions.places import Place

__all__ = ["Rewrites"]


class Rewrites:
    """The rewrites of a plan, except those of nodes that were rewritten more than once."""

    def __init__(self, applied: Sequence[Applied] | None) -> None:
        """Take the record of what was applied; None if there is none."""
        self.are_known = applied is not None
        self._by_place: dict[tuple[str, int], Rewrite | None] = {}
        for each in applied or ():
            place = each.graph, each.index
            is_again = place in self._by_place
            self._by_place[place] = None if is_again or each.entry is None else (each.entry, each.names or {})

    def note(self, claim: Claim, computed: Mapping[str, int], table: Table) -> None:
        """Add to a claim the rewrite that its two sides are, if they are one.

        Args:
            claim: values, all of one node of the first model.
            computed: the numbers of the values of the second model, as it computes them.
            table: gives the numbers.
        """
        left, right = claim.level.left, claim.level.right
        at = left.positions.get(claim.pairs[0][0]) if self.are_known else None
        found = None if at is None else self._by_place.get((claim.level.path, at)) or _stayed(claim, at)
        if found is None:
            return
        entry, names = found
        known = {part: left.numbers[name] for part, name in names.items() if name in left.numbers}
        numbers: Numbers = dict(known)
        if not all(_is(left, names[part], value) for part, value in entry.constants.items()):
            return
        table.add(entry.node, numbers, left.opsets)
        if numbers != known:
            return  # it is about another node, which stood there before a change to the whole model
        for name, tensor in (*entry.added.items(), *entry.adopted.items()):
            numbers[name] = table.constant(tensor)
        for node in entry.nodes:
            table.add(node, numbers, right.opsets)
        made = {name: numbers[part] for part, name in names.items()}
        if all(made.get(name) == computed[other] for name, other in claim.pairs):
            claim.rewrite = found
            claim.is_same = all(left.numbers[name] == made[name] for name, _ in claim.pairs)


def _is(place: Place, name: str, value: Array) -> bool:
    """Whether a value is a constant or computed from constants, and equals this one."""
    known = place.evaluated(name)
    return known is not None and identical(known, value)


def _stayed(claim: Claim, at: int) -> Rewrite | None:
    """A node that stays, as a rewrite to itself."""
    level, (left, right) = claim.level, claim.pairs[0]
    node, other = level.left.holder.node[at], level.right.producer(right)
    if other is None or may_hold_graphs(node) or (node.op_type, node.domain) != (other.op_type, other.domain):
        return None
    if list(node.output).index(left) != list(other.output).index(right):
        return None
    blanks = {name: blank(number) for number, name in enumerate(dict.fromkeys((*node.input, *node.output))) if name}
    bare = renamed(node, blanks)
    opsets = level.left.opsets.get("", 1), level.right.opsets.get("", 1)
    entry = Entry(bare, [bare], opsets, {}, {}, {}, frozenset(), (), "")
    return entry, {part: name for name, part in blanks.items()}
