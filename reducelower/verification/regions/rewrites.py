"""Finds the recorded rewrites of a plan in both models: a node, and in its place the nodes that should replace it.

Both sides of a rewrite are numbered from the values that the node reads. If they get the numbers of the claimed values,
these are equal wherever the rewrite is right, and nothing else that the engine did has to be trusted. A node that
stays, but whose operator has another page at the new version, is a rewrite to itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from onnx import numpy_helper

from reducelower.model.graph import may_hold_graphs
from reducelower.model.rewrites import Applied, Entry
from reducelower.numerics.measure import Array, identical
from reducelower.scope.blanks import blank
from reducelower.verification.regions.claims import Claim
from reducelower.verification.regions.numbering import Numbers, Table, renamed
from reducelower.verification.regions.places import Place

__all__ = ["Rewrites"]


class Rewrites:
    """The rewrites of a plan, except those of nodes that were rewritten more than once."""

    def __init__(self, applied: Sequence[Applied] | None) -> None:
        """Take the record of what was applied; None if there is none."""
        counts = Counter((each.graph, each.index) for each in applied or ())
        self._by_place = {(each.graph, each.index): each for each in applied or ()}
        self._by_place = {place: each for place, each in self._by_place.items() if counts[place] == 1}
        self.are_known = applied is not None

    def note(self, claim: Claim, computed: Mapping[str, int], table: Table) -> None:
        """Add to a claim the rewrite that its two sides are, if they are one.

        Args:
            claim: values, all of one node of the first model.
            computed: the numbers of the values of the second model, as it computes them.
            table: gives the numbers.
        """
        level = claim.level
        at = level.left.positions.get(claim.pairs[0][0]) if self.are_known else None
        if at is None:
            return
        found = self._by_place.get((level.path, at)) or _stayed(claim, at)
        if found is None or found.entry is None or found.names is None:
            return
        if not {left for left, _ in claim.pairs} <= {*found.names.values()}:
            return  # it is about another node, which stood there after a change to the whole model
        entry, names = found.entry, found.names
        numbers: Numbers = {
            part: level.left.numbers[name] for part, name in names.items() if name in level.left.numbers
        }
        known = {name: numbers.get(part) for part, name in names.items()}
        for part, value in entry.constants.items():
            is_held = numbers.get(part) == table.constant(numpy_helper.from_array(value))
            if not (is_held or _is(level.left, names[part], value)):
                return
        table.add(entry.node, numbers, level.left.opsets)
        if any(numbers.get(part) != known[name] for part, name in names.items()):
            return
        for name, tensor in (*entry.added.items(), *entry.adopted.items()):
            numbers[name] = table.constant(tensor)
        for node in entry.nodes:
            table.add(node, numbers, level.right.opsets)
        made = {name: numbers.get(part) for part, name in names.items()}
        if all(made[left] == computed[right] for left, right in claim.pairs):
            claim.rewrite = found
            claim.is_same = all(known[left] == made[left] for left, _ in claim.pairs)


def _is(place: Place, name: str, value: Array) -> bool:
    """Whether a value is computed from constants, and equals this one."""
    known = place.evaluated(name)
    return known is not None and identical(known, value)


def _stayed(claim: Claim, at: int) -> Applied | None:
    """A node that stays, as a rewrite to itself."""
    level, (left, right) = claim.level, claim.pairs[0]
    node, other = level.left.holder.node[at], level.right.producer(right)
    if other is None or may_hold_graphs(node) or (node.op_type, node.domain) != (other.op_type, other.domain):
        return None
    if list(node.output).index(left) != list(other.output).index(right):
        return None
    names = list(dict.fromkeys(filter(None, (*node.input, *node.output))))
    blanks = {name: blank(number) for number, name in enumerate(names)}
    bare = renamed(node, blanks)
    opsets = level.left.opsets.get("", 1), level.right.opsets.get("", 1)
    entry = Entry(bare, [bare], opsets, {}, {}, {}, frozenset(), (), "")
    return Applied(level.path, at, entry, {part: name for name, part in blanks.items()})
