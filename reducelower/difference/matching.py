"""Match the nodes of two graphs by structure; names are a hint.

Nodes are matched in this order: those that compute the same from the same values (equal numbers, see `numbering`);
those of one kind (operator, attributes and constants) with the same consumers up to the outputs; those of one operator
with the same output names; those of one kind with neighbours of the same kinds; and at last, following values from
matched nodes, those with only the operator in common.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property

from reducelower.difference.side import Side
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.verification.regions.numbering import COMMUTATIVE

__all__ = ["Matched", "match"]


@dataclass
class Matched:
    """Two graphs with their matched outputs and nodes.

    `pairs` maps left nodes to right ones, `taken` right ones to left ones. `exact` has the left nodes that compute the
    same from the same values.
    """

    left: Side
    right: Side
    outputs: Sequence[tuple[str, str]]
    pairs: dict[int, int] = field(default_factory=dict)
    taken: dict[int, int] = field(default_factory=dict)
    exact: AbstractSet[int] = frozenset()

    @cached_property
    def changed_inputs(self) -> Mapping[int, list[tuple[int, str, str]]]:
        """By position, the inputs in which a node differs from its match, for nodes with such inputs."""
        inputs_at = {at: self.inputs(at) for at in self.pairs if at not in self.exact}
        return {at: inputs for at, inputs in inputs_at.items() if inputs}

    def is_free(self, name: str, other: str) -> bool:
        """Whether an unmatched node computes the left value or the right one."""
        return self.left.is_free(name, self.pairs) or self.right.is_free(other, self.taken)

    def add(self, left: int, right: int) -> None:
        """Match two nodes."""
        self.pairs[left], self.taken[right] = right, left

    def same(self, left: str, right: str) -> bool:
        """Whether two values are the same, or computed by matched nodes."""
        if not left or not right:
            return left == right
        numbers = self.left.numbers.get(left), self.right.numbers.get(right)
        if None not in numbers and numbers[0] == numbers[1]:
            return True
        producer, other = self.left.producers.get(left, -1), self.right.producers.get(right, -1)
        return self.pairs.get(producer, -2) == other and self.left.outputs_at[left] == self.right.outputs_at[right]

    def inputs(self, left: int) -> list[tuple[int, str, str]]:
        """Position and names of the inputs in which two matched nodes differ.

        Values that subgraphs read from outside come after the inputs, if both nodes read the same names.
        """
        node, other = self.left.nodes[left], self.right.nodes[self.pairs[left]]
        names, others = list(node.input), list(other.input)
        if len(names) == len(others):
            inside, inside_other = self.left.reads[left][len(names) :], self.right.reads[self.pairs[left]][len(names) :]
            if inside == inside_other:
                names += inside
                others += inside_other
        if len(names) == len(others) and all(map(self.same, names, others)):
            return []
        if node.op_type in COMMUTATIVE and node.domain in DEFAULT_DOMAINS and len(names) == len(others) == 2:
            crossed = [self.same(names[0], others[1]), self.same(names[1], others[0])]
            straight = [self.same(names[0], others[0]), self.same(names[1], others[1])]
            if sum(crossed) > sum(straight):
                others.reverse()
        length = max(len(names), len(others))
        names += [""] * (length - len(names))
        others += [""] * (length - len(others))
        return [
            (at, name, other)
            for at, (name, other) in enumerate(zip(names, others, strict=True))
            if not self.same(name, other)
        ]


def match(left: Side, right: Side, outputs: Sequence[tuple[str, str]]) -> Matched:
    """Match the nodes of two graphs that are numbered with one table; `outputs` are the pairs of outputs."""
    matched = Matched(left, right, outputs)
    _pair(matched, left.exact_by_name, right.exact_by_name, same_count=False)
    _pair(matched, left.exact, right.exact, same_count=False)
    matched.exact = frozenset(matched.pairs)
    _pair(matched, left.following({at: at for at in matched.pairs}), right.following(matched.taken))
    _pair(matched, left.named, right.named)
    _pair(matched, left.beside(matched.pairs), right.beside(matched.taken))
    _spread(matched)
    return matched


def _pair(
    matched: Matched, left: Mapping[int, Hashable], right: Mapping[int, Hashable], *, same_count: bool = True
) -> None:
    """Match unmatched nodes of equal keys in order; by default only if both graphs have the same number of them."""
    groups: tuple[dict[Hashable, list[int]], dict[Hashable, list[int]]] = (defaultdict(list), defaultdict(list))
    for group, keys, done in ((groups[0], left, matched.pairs), (groups[1], right, matched.taken)):
        for at, key in keys.items():
            if at not in done:
                group[key].append(at)
    for key, members in groups[0].items():
        others = groups[1].get(key, [])
        if len(members) == len(others) or not same_count:
            for at, other in zip(members, others, strict=False):
                matched.add(at, other)


def _spread(matched: Matched) -> None:
    """Follow values up and down from matched nodes, to nodes with the same operator."""
    left, right = matched.left, matched.right
    unmatched = [at for at in left.nodes if at not in matched.pairs]
    beside = {left.producers.get(name) for at in unmatched for name in left.nodes[at].input}
    beside |= {reader for at in unmatched for name in left.nodes[at].output for reader, _ in left.readers.get(name, ())}
    pending = [at for at in matched.pairs if at in beside]
    for name, other in matched.outputs:
        pending += _join(matched, left.producers.get(name), right.producers.get(other))
    while pending:
        at = pending.pop()
        for _, name, other in matched.inputs(at):
            pending += _join(matched, left.producers.get(name), right.producers.get(other))
        for name, other in zip(left.nodes[at].output, right.nodes[matched.pairs[at]].output, strict=False):
            pending += _join(matched, _sole_reader(left, name), _sole_reader(right, other))


def _sole_reader(side: Side, name: str) -> int | None:
    readers = {at for at, _ in side.readers.get(name, ())}
    return readers.pop() if len(readers) == 1 else None


def _join(matched: Matched, left: int | None, right: int | None) -> Iterator[int]:
    if left is None or right is None or left in matched.pairs or right in matched.taken:
        return
    if matched.left.operator(left) == matched.right.operator(right):
        matched.add(left, right)
        yield left
