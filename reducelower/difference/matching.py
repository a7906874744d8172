"""Match the nodes of two graphs by structure.

First, nodes that compute the same from the same values, by number (`numbering`). Then nodes of the same operator,
attributes and constants, told apart by what follows them and what is next to them. Last, starting from matched nodes
along values, nodes with only the operator in common. Names are not used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property

from onnx import FunctionProto, GraphProto, NodeProto, ValueInfoProto

from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.verification.regions.numbering import COMMUTATIVE, Functions, Numbers, Table, attributes
from reducelower.verification.regions.places import Place

__all__ = ["Matched", "Side", "match"]


class Side:
    """A graph or function body of one model, with its values numbered.

    Attributes:
        opsets: the opset versions at which operators are compared.
        numbers: the numbers of its values and of outer values.
        nodes: all nodes by position, except constants, which count by value.
        reads: by position, the names that a node and its subgraphs read.
        exact: by position, a key for what a node computes, and from which values.
        producers: by value name, the position of the node that computes it.
        outputs_at: by value name, which output of that node it is.
    """

    def __init__(
        self, path: str, place: Place, numbers: Numbers, table: Table, opsets: Mapping[str, int], functions: Functions
    ) -> None:
        self.path, self.place, self.numbers = path, place, numbers
        self._table, self.opsets, self.functions = table, opsets, functions
        self.nodes: dict[int, NodeProto] = {}
        self.reads: dict[int, Sequence[str]] = {}
        self.exact: dict[int, int] = {}
        self.producers: dict[str, int] = {}
        self.outputs_at: dict[str, int] = {}
        self.constants: Numbers = {name: numbers[name] for name in self._initializers if name in numbers}
        self._kinds: dict[int, int] = {}
        for at, node in enumerate(self.holder.node):
            found = table.add(node, numbers, opsets, functions)
            if node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS:
                table.add(node, self.constants, opsets, functions)
                continue
            self.nodes[at] = node
            self.reads[at] = found.reads
            self.exact[at] = found.computes
            for output, name in enumerate(found.yields):
                if name:
                    self.producers[name], self.outputs_at[name] = at, output

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
        for at, names in self.reads.items():
            for position, name in enumerate(names):
                found[name].append((at, position))
        return found

    def kind(self, at: int) -> int:
        """A number for the operator, attributes, subgraphs and constants of a node."""
        if at not in self._kinds:
            signature = self._table.signature(self.nodes[at], self.constants, self.opsets, self.functions)
            self._kinds[at] = self._table.of(("kind", signature))
        return self._kinds[at]

    def attributes(self, node: NodeProto) -> tuple[tuple[str, bytes], ...]:
        """The attributes of a node, without graphs and default values."""
        return attributes(node, self.opsets.get("", 1))

    def label(self, at: int) -> str:
        """The name of a node, or its operator and position if it has none."""
        return self.nodes[at].name or f"{self.nodes[at].op_type}#{at}"

    def alone(self, matched: Container[int]) -> dict[int, Hashable]:
        """By position, for a node that is not matched, the number for its kind."""
        return {at: self.kind(at) for at in self.nodes if at not in matched}

    def following(self, matched: Mapping[int, int]) -> dict[int, int]:
        """By position, for a node that is not matched, a number for its kind with everything that follows it.

        `matched` has the pairs by position, as positions in the first graph.
        """
        found: dict[int, int] = {}
        places: dict[str, list[int]] = defaultdict(list)
        for place, output in enumerate(self.outputs):
            places[output].append(place)
        for at in reversed(self.nodes):
            if at in matched:
                continue
            uses = []
            for name in self.nodes[at].output:
                followed = [
                    (found.get(reader, -1), matched.get(reader, -1), position)
                    for reader, position in self.readers.get(name, ())
                ]
                followed.sort()
                uses.append((tuple(followed), tuple(places.get(name, ()))))
            found[at] = self._table.of(("following", self.kind(at), tuple(uses)))
        return found

    def beside(self, matched: Container[int]) -> dict[int, Hashable]:
        """By position, for a node that is not matched, a number for its kind with those of its neighbours."""
        found: dict[int, Hashable] = {}
        for at, node in self.nodes.items():
            if at in matched:
                continue
            above = tuple(self.kind(self.producers[name]) if name in self.producers else -1 for name in node.input)
            below = sorted(self.kind(reader) for name in node.output for reader, _ in self.readers.get(name, ()))
            found[at] = self._table.of(("beside", self.kind(at), above, tuple(below)))
        return found


@dataclass
class Matched:
    """Two graphs with their matched outputs and nodes.

    `pairs` leads from left to right, `taken` back; `exact` are those on the left that compute the same.
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
        """Position and names of the inputs in which two matched nodes differ."""
        node, other = self.left.nodes[left], self.right.nodes[self.pairs[left]]
        names, others = list(node.input), list(other.input)
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
    _pair(found, left.exact, right.exact, same_count=False)
    found.exact = frozenset(found.pairs)
    if len(found.pairs) == len(left.nodes) or len(found.taken) == len(right.nodes):
        return found
    _pair(found, left.following({at: at for at in found.pairs}), right.following(found.taken))
    _pair(found, left.beside(found.pairs), right.beside(found.taken))
    _pair(found, left.alone(found.pairs), right.alone(found.taken))
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
    node, other = found.left.nodes[left], found.right.nodes[right]
    if (node.op_type, node.domain) == (other.op_type, other.domain):
        found.add(left, right)
        yield left
