"""Match the nodes of two graphs by their alignment, which `verify` uses too, and along the values between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import zip_longest

from reducelower.model.graph import inner_path, may_hold_graphs, node_label, subgraphs
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.verification.regions.align import start
from reducelower.verification.regions.numbering import COMMUTATIVE, Table, attributes, is_constant, read_by
from reducelower.verification.regions.places import Place

__all__ = ["Matched", "Side", "match"]


class Side:
    """One of two matched graphs.

    Attributes:
        numbers: the numbers of all values, equal for those that both sides have.
        nodes: by position, except constants, which count by value.
        partners: by position of a node, the position of its match.
    """

    def __init__(self, path: str, place: Place) -> None:
        self.path, self.place, self.numbers = path, place, place.numbers
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

    def operator(self, at: int) -> Hashable:
        """The operator of a node, and what the graphs inside look like from outside."""
        node = self.nodes[at]
        inner = subgraphs(node) if may_hold_graphs(node) else ()
        return node.domain, node.op_type, *((name, len(graph.input), len(graph.output)) for _, name, graph in inner)

    def open_by_kind(self) -> Mapping[Hashable, list[int]]:
        """The positions of unmatched nodes, by operator, attributes and numbers of operands."""
        found: dict[Hashable, list[int]] = {}
        for at, node in self.nodes.items():
            if at not in self.partners:
                kind = self.operator(at), attributes(node, self.opset), len(node.input), len(node.output)
                found.setdefault(kind, []).append(at)
        return found

    def number(self, name: str) -> int:
        """The number of a value; negative if it is absent or nothing computes it."""
        return self.numbers.get(name, -1) if name else -2

    def label(self, at: int) -> str:
        """The name of a node, or its operator and position if it has none."""
        return node_label(self.nodes[at], at)


class Matched:
    """Two graphs with their matched nodes, and the names of the outputs that correspond."""

    def __init__(self, path: str, left: Place, right: Place) -> None:
        self.left, self.right = Side(path, left), Side(path, right)
        self.outputs = list(zip(self.left.outputs, self.right.outputs, strict=False))

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


def match(
    left: Place, right: Place, inputs: Mapping[str, str], outputs: Mapping[str, str], *, by_name: bool
) -> list[Matched]:
    """Match the nodes of two main graphs, and of the graphs inside matched nodes, outer before inner.

    Args:
        left, right: the main graphs.
        inputs, outputs: the names of those on the right, with the names of those on the left that correspond.
        by_name: whether names of values inside count.
    """
    table, main = Table(), Matched("graph", left, right)
    start(table, left, right, inputs)
    main.outputs = [(name, other) for other, name in outputs.items()]
    found = [main]
    for matched in found:  # grows while it is iterated
        for side in (matched.left, matched.right):
            for node in side.place.holder.node:
                table.add(node, side.numbers, side.place.opsets)
        _match(matched, by_name=by_name)
        if by_name:
            _name(matched)
        found += _inside(matched, table)
    return found


def _inside(matched: Matched, table: Table) -> Iterator[Matched]:
    """The graphs inside matched nodes, two by two."""
    left, right = matched.left, matched.right
    for at in (at for at in left.nodes if at in left.partners and may_hold_graphs(left.nodes[at])):
        for number, name, _ in subgraphs(left.nodes[at]):
            places = left.place.inside(at, number), right.place.inside(left.partners[at], number)
            for place in places:
                table.start(place.holder, place.numbers)
            yield Matched(inner_path(left.path, left.nodes[at], at, name), *places)


def _match(matched: Matched, *, by_name: bool) -> None:
    """Match nodes of one operator: those that compute the same, or values of the same name, or what matched nodes read,
    and those of which each side has one like them."""

    def results(side: Side, at: int) -> Hashable:
        return tuple(side.number(name) for name in side.nodes[at].output if name)[:1]

    _pair(matched, lambda side, at: (results(side, at), *side.nodes[at].output))
    _pair(matched, results)
    if by_name:
        _pair(matched, lambda side, at: tuple(side.nodes[at].output))
    _follow(matched)
    _pair_alike(matched)
    _follow(matched)


def _name(matched: Matched) -> None:
    """Let values of one name count as the same if an unmatched node computes one, of which it is told."""
    left, right = matched.left, matched.right
    for name in left.producers.keys() & right.producers.keys():
        if right.is_free(name):
            right.numbers[name] = left.numbers[name]
        elif left.is_free(name):
            left.numbers[name] = right.numbers[name]


def _pair(matched: Matched, key: Callable[[Side, int], Hashable]) -> None:
    """Match unmatched nodes of equal operators and keys, in order."""
    waiting: dict[Hashable, list[int]] = defaultdict(list)
    for at in reversed(matched.right.nodes):
        if at not in matched.right.partners:
            waiting[matched.right.operator(at), key(matched.right, at)].append(at)
    for at in matched.left.nodes:
        if at not in matched.left.partners:
            others = waiting[matched.left.operator(at), key(matched.left, at)]
            if others:
                matched.add(at, others.pop())


def _pair_alike(matched: Matched) -> None:
    """Match unmatched nodes of equal operators and attributes if each side has one."""
    alike, others = (side.open_by_kind() for side in (matched.left, matched.right))
    for kind, nodes in alike.items():
        if len(nodes) == len(others.get(kind, ())) == 1:
            matched.add(nodes[0], others[kind][0])


def _follow(matched: Matched) -> None:
    """Match nodes of the same operator that compute an input of matched nodes."""
    left, right = matched.left, matched.right
    pending = [*left.partners]
    for name, other in matched.outputs:
        pending += _join(matched, left.producers.get(name), right.producers.get(other))
    while pending and len(left.partners) < len(left.nodes):
        at = pending.pop()
        for _, name, other in matched.changed_inputs(at):
            pending += _join(matched, left.producers.get(name), right.producers.get(other))


def _join(matched: Matched, left: int | None, right: int | None) -> Iterator[int]:
    if left is None or right is None or left in matched.left.partners or right in matched.right.partners:
        return
    if matched.left.operator(left) == matched.right.operator(right):
        matched.add(left, right)
        yield left
