"""Match the nodes of two graphs by structure; names are a hint.

First nodes are matched that compute the same from the same values, by number (`numbering`), whatever their names. Then
those of one kind, that is operator, attributes and constants, that all that follows tells apart; those of one operator
that compute a value of the same name; and those of one kind with like neighbours. At last, starting from matched nodes
along values, nodes with only the operator in common.
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

    `pairs` leads from left to right, `taken` back; `exact` are those on the left that compute the same from the same
    values.
    """

    left: Side
    right: Side
    outputs: Sequence[tuple[str, str]]
    pairs: dict[int, int] = field(default_factory=dict)
    taken: dict[int, int] = field(default_factory=dict)
    exact: AbstractSet[int] = frozenset()

    @cached_property
    def changed_inputs(self) -> Mapping[int, list[tuple[int, str, str]]]:
        """By position, the inputs in which a node differs from its match; of those alone that have such inputs."""
        found = {at: self.inputs(at) for at in self.pairs if at not in self.exact}
        return {at: inputs for at, inputs in found.items() if inputs}

    def is_free(self, name: str, other: str) -> bool:
        """Whether a node that is not matched computes a value of the left, or one of the right."""
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

        What the graphs inside read from around them comes after the inputs, where both read values of the same names.
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
    """Match the nodes of two graphs that are numbered with one table, given the pairs of outputs."""
    found = Matched(left, right, outputs)
    _pair(found, left.exact_by_name, right.exact_by_name, same_count=False)
    _pair(found, left.exact, right.exact, same_count=False)
    found.exact = frozenset(found.pairs)
    _pair(found, left.following({at: at for at in found.pairs}), right.following(found.taken))
    _pair(found, left.named, right.named)
    _pair(found, left.beside(found.pairs), right.beside(found.taken))
    _spread(found)
    return found


def _pair(
    found: Matched, left: Mapping[int, Hashable], right: Mapping[int, Hashable], *, same_count: bool = True
) -> None:
    """Match unmatched nodes of equal keys in order, if both graphs have the same number of them."""
    groups: tuple[dict[Hashable, list[int]], dict[Hashable, list[int]]] = (defaultdict(list), defaultdict(list))
    for group, keys, known in ((groups[0], left, found.pairs), (groups[1], right, found.taken)):
        for at, key in keys.items():
            if at not in known:
                group[key].append(at)
    for key, members in groups[0].items():
        others = groups[1].get(key, [])
        if len(members) == len(others) or not same_count:
            for at, other in zip(members, others, strict=False):
                found.add(at, other)


def _spread(found: Matched) -> None:
    """Follow values up and down from matched nodes, to nodes with the same operator."""
    left = found.left
    unmatched = [at for at in left.nodes if at not in found.pairs]
    beside = {left.producers.get(name) for at in unmatched for name in left.nodes[at].input}
    beside |= {reader for at in unmatched for name in left.nodes[at].output for reader, _ in left.readers.get(name, ())}
    pending = [at for at in found.pairs if at in beside]
    for name, other in found.outputs:
        pending += _join(found, found.left.producers.get(name), found.right.producers.get(other))
    while pending:
        at = pending.pop()
        for _, name, other in found.inputs(at):
            pending += _join(found, found.left.producers.get(name), found.right.producers.get(other))
        for name, other in zip(found.left.nodes[at].output, found.right.nodes[found.pairs[at]].output, strict=False):
            pending += _join(found, _sole_reader(found.left, name), _sole_reader(found.right, other))


def _sole_reader(side: Side, name: str) -> int | None:
    readers = {at for at, _ in side.readers.get(name, ())}
    return readers.pop() if len(readers) == 1 else None


def _join(found: Matched, left: int | None, right: int | None) -> Iterator[int]:
    if left is None or right is None or left in found.pairs or right in found.taken:
        return
    if found.left.operator(left) == found.right.operator(right):
        found.add(left, right)
        yield left
