"""Match the nodes of two graphs by their alignment, which `verify` uses too, and along the values between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import zip_longest

from reducelower.model.graph import subgraphs
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.verification.regions.claims import Level
from reducelower.verification.regions.numbering import COMMUTATIVE, attributes, is_constant, read_by
from reducelower.verification.regions.places import Place

__all__ = ["Matched", "Side", "match"]


class Side:
    """One of two matched graphs.

    Attributes:
        numbers: the numbers of all values, equal for those that both sides have.
        nodes: by position, except constants, which count by value.
        partners: by position of a node, the position of its match.
    """

    def __init__(self, path: str, place: Place, entered: Set[int]) -> None:
        self.path, self.place, self.numbers, self._entered = path, place, place.numbers, entered
        self.nodes = {at: node for at, node in enumerate(place.holder.node) if not is_constant(node)}
        self.partners: dict[int, int] = {}

    @cached_property
    def producers(self) -> Mapping[str, int]:
        """By value name, the position of the node that computes it."""
        return {name: at for at, node in self.nodes.items() for name in node.output if name}

    @cached_property
    def readers(self) -> Mapping[str, list[int]]:
        """By value name, the positions of the nodes that read it, themselves or in their subgraphs."""
        readers: dict[str, list[int]] = defaultdict(list)
        for at, node in self.nodes.items():
            for name in dict.fromkeys(read_by(node)):
                readers[name].append(at)
        return readers

    @cached_property
    def outputs(self) -> Sequence[str]:
        """The names of its outputs."""
        return [item.name for item in self.place.holder.output]

    @property
    def opset(self) -> int:
        """The version of the default domain."""
        return self.place.opsets.get("", 1)

    def is_free(self, name: str) -> bool:
        """Whether an unmatched node computes the value."""
        return name in self.producers and self.producers[name] not in self.partners

    def is_fixed(self, name: str) -> bool:
        """Whether an input is absent, or a constant of this graph or of one around it."""
        return not name or (name not in self.producers and self.place.constant(name) is not None)

    def operator(self, at: int) -> tuple[str, str]:
        """Domain and name of the operator of a node."""
        return self.nodes[at].domain, self.nodes[at].op_type

    def is_open(self, at: int) -> bool:
        """Whether a node may still be matched: not if it has graphs inside that were not aligned."""
        return at not in self.partners and at not in self._closed

    def open_by_kind(self) -> Mapping[Hashable, list[int]]:
        """The positions of nodes that may still be matched, by operator, attributes and numbers of operands."""
        found: dict[Hashable, list[int]] = {}
        for at, node in self.nodes.items():
            if self.is_open(at):
                kind = self.operator(at), attributes(node, self.opset), len(node.input), len(node.output)
                found.setdefault(kind, []).append(at)
        return found

    @cached_property
    def _closed(self) -> Set[int]:
        holding = {at for at, node in self.nodes.items() if any(subgraphs(node))}
        return {at for at in holding if self._entered.isdisjoint(map(self.number, self.nodes[at].output))}

    def number(self, name: str) -> int:
        """The number of a value; negative if it is absent or nothing computes it."""
        return self.numbers.get(name, -1) if name else -2

    def label(self, at: int) -> str:
        """The name of a node, or its operator and position if it has none."""
        return self.nodes[at].name or f"{self.nodes[at].op_type}#{at}"


class Matched:
    """Two graphs with their matched nodes, and the names of the outputs that correspond."""

    def __init__(self, level: Level, outputs: Mapping[str, str] | None) -> None:
        self.left = Side(level.path, level.left, level.entered)
        self.right = Side(level.path, level.right, level.entered)
        self.outputs = list(zip(self.left.outputs, self.right.outputs, strict=False))
        if outputs is not None:
            self.outputs = [(name, other) for other, name in outputs.items()]

    def add(self, left: int, right: int) -> None:
        """Match two nodes; their outputs count as the same."""
        self.left.partners[left], self.right.partners[right] = right, left
        for name, other in zip(self.left.nodes[left].output, self.right.nodes[right].output, strict=False):
            if name and other:
                self.right.numbers[other] = self.left.numbers[name]

    def same(self, name: str, other: str) -> bool:
        """Whether a value of the left side and one of the right are the same."""
        return self.left.number(name) == self.right.number(other)

    def changed_inputs(self, left: int) -> list[tuple[int, str, str]]:
        """Position and names of the inputs in which a node differs from its match."""
        node, other = self.left.nodes[left], self.right.nodes[self.left.partners[left]]
        names, others = list(node.input), list(other.input)
        if node.op_type in COMMUTATIVE and node.domain in DEFAULT_DOMAINS and len(names) == len(others) == 2:
            straight, crossed = sum(map(self.same, names, others)), sum(map(self.same, names, reversed(others)))
            if crossed > straight:
                others.reverse()
        pairs = enumerate(zip_longest(names, others, fillvalue=""))
        return [(at, name, new) for at, (name, new) in pairs if not self.same(name, new)]


def match(level: Level, outputs: Mapping[str, str] | None = None) -> Matched:
    """Match the nodes of two aligned graphs; `outputs` maps names on the right to those on the left, if not by place.

    Nodes of one operator are matched if the alignment found their outputs to be the same, then in order if both sides
    have as many like nodes, then if they read or compute values next to each other.
    """

    def results(side: Side, at: int) -> Hashable:
        return tuple(side.number(name) for name in side.nodes[at].output if name)[:1]

    matched = Matched(level, outputs)
    _pair(matched, lambda side, at: (results(side, at), *side.nodes[at].output))
    _pair(matched, results)
    _follow(matched)
    for most in (1, len(matched.left.nodes)):
        _pair_alike(matched, most)
        _follow(matched)
    return matched


def _pair(matched: Matched, key: Callable[[Side, int], Hashable]) -> None:
    """Match unmatched nodes of equal operators and keys, in order."""
    waiting: dict[Hashable, list[int]] = defaultdict(list)
    for at in reversed(matched.right.nodes):
        if matched.right.is_open(at):
            waiting[matched.right.operator(at), key(matched.right, at)].append(at)
    for at in matched.left.nodes:
        if matched.left.is_open(at):
            others = waiting[matched.left.operator(at), key(matched.left, at)]
            if others:
                matched.add(at, others.pop())


def _pair_alike(matched: Matched, most: int) -> None:
    """Match unmatched nodes of equal operators and attributes in order, if both sides have as many, and few enough."""
    alike, others = (side.open_by_kind() for side in (matched.left, matched.right))
    for kind, nodes in alike.items():
        if most >= len(nodes) == len(others.get(kind, ())):
            for left, right in zip(nodes, others[kind], strict=True):
                matched.add(left, right)


def _follow(matched: Matched) -> None:
    """Match nodes of the same operator that compute an input of matched nodes, or alone read an output of these."""
    left, right = matched.left, matched.right
    pending = [*left.partners]
    for name, other in matched.outputs:
        pending += _join(matched, left.producers.get(name), right.producers.get(other))
    while pending and len(left.partners) < len(left.nodes):
        at = pending.pop()
        for _, name, other in matched.changed_inputs(at):
            pending += _join(matched, left.producers.get(name), right.producers.get(other))
        for name, other in zip(left.nodes[at].output, right.nodes[left.partners[at]].output, strict=False):
            readers, new_readers = left.readers.get(name, ()), right.readers.get(other, ())
            if len(readers) == len(new_readers) == 1:
                pending += _join(matched, readers[0], new_readers[0])


def _join(matched: Matched, left: int | None, right: int | None) -> Iterator[int]:
    if left is None or right is None or not (matched.left.is_open(left) and matched.right.is_open(right)):
        return
    if matched.left.operator(left) == matched.right.operator(right):
        matched.add(left, right)
        yield left
