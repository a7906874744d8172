"""Match the nodes of two graphs by structure.

First, nodes that compute the same from the same values, by number (`numbering`). Then nodes of the same operator,
attributes and constants, told apart by what follows them and what is next to them. Last, starting from matched nodes
along values, nodes with only the operator in common. Names are not used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from onnx import FunctionProto, GraphProto, NodeProto, ValueInfoProto

from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.verification.regions.numbering import COMMUTATIVE, Functions, Numbers, Table, attributes, read_by
from reducelower.verification.regions.places import Place

__all__ = ["Matched", "Side", "match"]


class Side:
    """A graph or function body of one model, with its values numbered.

    Attributes:
        opsets: the opset versions at which operators are compared.
        numbers: the numbers of its values and of outer values.
        nodes: all nodes by position, except constants, which count by value.
        producers: by value name, the position of the node that computes it.
    """

    def __init__(
        self, path: str, place: Place, numbers: Numbers, table: Table, opsets: Mapping[str, int], functions: Functions
    ) -> None:
        self.path, self.place, self.numbers = path, place, numbers
        self._table, self.opsets, self.functions = table, opsets, functions
        self.nodes: dict[int, NodeProto] = {}
        self.producers: dict[str, int] = {}
        self.constants: Numbers = {name: numbers[name] for name in self._initializers if name in numbers}
        for at, node in enumerate(self.holder.node):
            table.add(node, numbers, opsets, functions)
            if node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS:
                table.add(node, self.constants, opsets, functions)
            else:
                self.nodes[at] = node
                self.producers.update((name, at) for name in node.output if name)

    @property
    def holder(self) -> GraphProto | FunctionProto:
        """The graph or function."""
        return self.place.holder

    @cached_property
    def _initializers(self) -> set[str]:
        if isinstance(self.holder, FunctionProto):
            return set()
        fed = {value.name for value in self.holder.input}
        sparse = {tensor.values.name for tensor in self.holder.sparse_initializer}
        return ({tensor.name for tensor in self.holder.initializer} | sparse) - fed

    @cached_property
    def stated(self) -> Mapping[str, ValueInfoProto]:
        """The stated type by value name."""
        values = list(self.holder.value_info)
        if isinstance(self.holder, GraphProto):
            values += self.holder.output
        return {value.name: value for value in values}

    @cached_property
    def outputs(self) -> list[str]:
        """The names of its outputs."""
        return [item if isinstance(item, str) else item.name for item in self.holder.output]

    @cached_property
    def readers(self) -> Mapping[str, list[tuple[int, int]]]:
        """The consumers by value name, each with the position of the input."""
        found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for at, node in self.nodes.items():
            for position, name in enumerate(read_by(node)):
                found[name].append((at, position))
        return found

    def exact(self, at: int) -> Hashable:
        """A key for what a node computes, and from which values."""
        return self._table.signature(self.nodes[at], self.numbers, self.opsets, self.functions), self._arity(at)

    @cached_property
    def kinds(self) -> dict[int, int]:
        """By position, a number for a node's operator, attributes, subgraphs and constants."""
        return {
            at: self._table.of(("kind", self._table.signature(node, self.constants, self.opsets, self.functions)))
            for at, node in self.nodes.items()
        }

    def attributes(self, node: NodeProto) -> tuple[tuple[str, bytes], ...]:
        """The attributes of a node, without graphs and default values."""
        return attributes(node, self.opsets.get("", 1))

    def label(self, at: int) -> str:
        """The name of a node, or its operator and position if it has none."""
        return self.nodes[at].name or f"{self.nodes[at].op_type}#{at}"

    def _arity(self, at: int) -> tuple[int, int]:
        return len(self.nodes[at].input), len(self.nodes[at].output)

    def following(self) -> dict[int, int]:
        """By position, a number for a node's kind with everything that follows it."""
        found: dict[int, int] = {}
        for at in reversed(self.nodes):
            uses = tuple(
                tuple(sorted((found.get(reader, -1), position) for reader, position in self.readers.get(name, ())))
                + tuple(("output", place) for place, output in enumerate(self.outputs) if output == name)
                for name in self.nodes[at].output
            )
            found[at] = self._table.of(("following", self.kinds[at], uses))
        return found

    def beside(self) -> dict[int, int]:
        """By position, a number for a node's kind with those of its neighbours."""
        found, kinds = {}, self.kinds
        for at, node in self.nodes.items():
            above = tuple(kinds.get(self.producers.get(name, -1), -1) for name in node.input)
            below = tuple(sorted(kinds[reader] for name in node.output for reader, _ in self.readers.get(name, ())))
            found[at] = self._table.of(("beside", kinds[at], above, below))
        return found


@dataclass
class Matched:
    """Two graphs with their matched outputs and nodes: `pairs` from left to right, `taken` back."""

    left: Side
    right: Side
    outputs: Sequence[tuple[str, str]]
    pairs: dict[int, int] = field(default_factory=dict)
    taken: dict[int, int] = field(default_factory=dict)

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
        if self.pairs.get(producer, -2) != other:
            return False
        places = list(self.left.nodes[producer].output), list(self.right.nodes[other].output)
        return places[0].index(left) == places[1].index(right)

    def inputs(self, left: int) -> list[tuple[int, str, str]]:
        """Position and names of the inputs in which two matched nodes differ."""
        node, other = self.left.nodes[left], self.right.nodes[self.pairs[left]]
        names, others = list(node.input), list(other.input)
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
    _pair(found, left.exact, right.exact, same_count=False)
    keys: list[Callable[[Side], Mapping[int, int]]] = [Side.following, Side.beside, lambda side: side.kinds]
    for key in keys:
        if len(found.pairs) == len(left.nodes) or len(found.taken) == len(right.nodes):
            break
        _pair(found, key(left).__getitem__, key(right).__getitem__)
    _spread(found)
    return found


def _pair(
    found: Matched, left: Callable[[int], Hashable], right: Callable[[int], Hashable], *, same_count: bool = True
) -> None:
    """Match unmatched nodes of equal keys in order, if both graphs have the same number of them."""
    groups: tuple[dict[Hashable, list[int]], dict[Hashable, list[int]]] = (defaultdict(list), defaultdict(list))
    for group, side, key, known in (
        (groups[0], found.left, left, found.pairs),
        (groups[1], found.right, right, found.taken),
    ):
        for at in side.nodes:
            if at not in known:
                group[key(at)].append(at)
    for key_of_both, members in groups[0].items():
        others = groups[1].get(key_of_both, [])
        if len(members) == len(others) or not same_count:
            for at, other in zip(members, others, strict=False):
                found.add(at, other)


def _spread(found: Matched) -> None:
    """Follow values up and down from matched nodes, to nodes with the same operator."""
    pending = [*found.pairs]
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
    node, other = found.left.nodes[left], found.right.nodes[right]
    if (node.op_type, node.domain) == (other.op_type, other.domain):
        found.add(left, right)
        yield left
