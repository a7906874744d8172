"""One side of a comparison: a graph or function body, and the keys by which its nodes are matched."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import chain

from onnx import FunctionProto, GraphProto, NodeProto, ValueInfoProto

from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.verification.regions.numbering import Functions, Numbers, Table, attributes, read_by
from reducelower.verification.regions.places import Place

__all__ = ["Side"]


class Side:
    """A graph or function body of one model.

    Attributes:
        opsets: the opset versions at which operators are compared.
        numbers: the numbers of its inputs and constants, of outer values and, once `exact` is computed, of all values.
        nodes: all nodes by position, except constants, which count by value.
        constants: the numbers of its own constants.
        texts: the texts for constants, by number.
        producers: by value name, the position of the node that computes it.
        outputs_at: by value name, which output of that node it is.
    """

    def __init__(
        self, path: str, place: Place, numbers: Numbers, table: Table, opsets: Mapping[str, int], functions: Functions
    ) -> None:
        self.path, self.place, self.numbers = path, place, numbers
        self._table, self.opsets, self.functions = table, opsets, functions
        self.nodes: dict[int, NodeProto] = {}
        self.producers: dict[str, int] = {}
        self.outputs_at: dict[str, int] = {}
        self.constants: Numbers = {name: numbers[name] for name in self._initializers if name in numbers}
        self.texts: dict[int, str] = {}
        self._kinds: dict[int, int] = {}
        for at, node in enumerate(self.holder.node):
            if node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS:
                table.add(node, numbers, opsets, functions)
                table.add(node, self.constants, opsets, functions)
                continue
            self.nodes[at] = node
            for output, name in enumerate(node.output):
                if name:
                    self.producers[name], self.outputs_at[name] = at, output

    @cached_property
    def exact(self) -> Mapping[int, Hashable]:
        """By position, the operator of a node and the numbers of its outputs. This numbers all values."""
        return {
            at: (self.operator(at), self._table.add(node, self.numbers, self.opsets, self.functions))
            for at, node in self.nodes.items()
        }

    @property
    def exact_by_name(self) -> Mapping[int, Hashable]:
        """Like `exact`, with the names of the outputs."""
        return {at: (number, *self.nodes[at].output) for at, number in self.exact.items()}

    @property
    def named(self) -> Mapping[int, Hashable]:
        """By position, the operator of a node and the names of its outputs."""
        return {at: (self.operator(at), *node.output) for at, node in self.nodes.items()}

    @property
    def holder(self) -> GraphProto | FunctionProto:
        """The graph or function."""
        return self.place.holder

    @cached_property
    def _initializers(self) -> set[str]:
        if isinstance(self.holder, FunctionProto):
            return set()
        input_names = {value.name for value in self.holder.input}
        sparse = {tensor.values.name for tensor in self.holder.sparse_initializer}
        return ({tensor.name for tensor in self.holder.initializer} | sparse) - input_names

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
    def reads(self) -> Mapping[int, Sequence[str]]:
        """By position, the names that a node and its subgraphs read."""
        return {at: read_by(node) for at, node in self.nodes.items()}

    @cached_property
    def read(self) -> AbstractSet[str]:
        """All names that nodes read."""
        return {*chain.from_iterable(self.reads.values())}

    @cached_property
    def readers(self) -> Mapping[str, list[tuple[int, int]]]:
        """The consumers by value name, each with the position of the input."""
        consumers: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for at, names in self.reads.items():
            for position, name in enumerate(names):
                consumers[name].append((at, position))
        return consumers

    def operator(self, at: int) -> tuple[str, str]:
        """Domain and name of the operator of a node."""
        node = self.nodes[at]
        return node.domain, node.op_type

    def kind(self, at: int) -> int:
        """A number for the operator, attributes, subgraphs and constants of a node."""
        if at not in self._kinds:
            signature = self._table.signature(self.nodes[at], self.constants, self.opsets, self.functions)
            self._kinds[at] = self._table.of(("kind", signature))
        return self._kinds[at]

    def attributes(self, node: NodeProto) -> tuple[tuple[str, bytes], ...]:
        """The attributes of a node, without graphs and default values."""
        return attributes(node, self.opsets.get("", 1))

    def is_free(self, name: str, matched: Container[int]) -> bool:
        """Whether an unmatched node computes the value."""
        producer = self.producers.get(name)
        return producer is not None and producer not in matched

    def is_fixed(self, name: str) -> bool:
        """Whether an input is absent, or a constant of this graph or of one around it."""
        if not name or name in self.constants:
            return True
        return name not in self.producers and self.place.constant(name) is not None

    def label(self, at: int) -> str:
        """The name of a node, or its operator and position if it has none."""
        return self.nodes[at].name or f"{self.nodes[at].op_type}#{at}"

    def following(self, matched: Mapping[int, int]) -> dict[int, int]:
        """By position of each unmatched node, a number for its kind and everything that follows it.

        `matched` has the pairs by position, as positions in the first graph.
        """
        keys: dict[int, int] = {}
        places: dict[str, list[int]] = defaultdict(list)
        for place, output in enumerate(self.outputs):
            places[output].append(place)
        for at in reversed(self.nodes):
            if at in matched:
                continue
            uses = []
            for name in self.nodes[at].output:
                consumers = [
                    (keys.get(reader, -1), matched.get(reader, -1), position)
                    for reader, position in self.readers.get(name, ())
                ]
                consumers.sort()
                uses.append((tuple(consumers), tuple(places.get(name, ()))))
            keys[at] = self._table.of(("following", self.kind(at), tuple(uses)))
        return keys

    def beside(self, matched: Container[int]) -> dict[int, Hashable]:
        """By position of each unmatched node, a number for its kind and those of its neighbours."""
        keys: dict[int, Hashable] = {}
        for at, node in self.nodes.items():
            if at in matched:
                continue
            above = tuple(self.kind(self.producers[name]) if name in self.producers else -1 for name in node.input)
            below = sorted(self.kind(reader) for name in node.output for reader, _ in self.readers.get(name, ()))
            keys[at] = self._table.of(("beside", self.kind(at), above, tuple(below)))
        return keys
