"""Graphs and subgraphs as the resolver sees them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import count, repeat
from math import prod
from operator import attrgetter
from typing import Any

from onnx import GraphProto, NodeProto, OperatorSetIdProto, TensorProto, TypeProto

from reducelower.errors import RefusedError
from reducelower.model.constants import tensor_of
from reducelower.model.graph import may_hold_graphs, read_by, read_outside_nodes, subgraphs
from reducelower.model.numbers import Array, value_of_tensor
from reducelower.model.schemas import DEFAULT_DOMAINS, plain_domain, type_string
from reducelower.model.value_info import StatedType, stated_type
from reducelower.types.known import COUNTING, LONGEST, Question

__all__ = ["Constant", "Graph", "GraphKey"]

_NAME = attrgetter("name")

GraphKey = tuple[int, ...]
"""Positions of node and subgraph from the main graph inward."""


class Constant:
    """The facts about a constant of a graph, by question. Its value is read only when a question needs it.

    Attributes:
        answers: the answers that need no value.
    """

    container = None

    def __init__(self, graph: Graph, tensor: TensorProto, name: str) -> None:
        """Take the graph, and the tensor with its name there."""
        self.element_type, self.shape = tensor.data_type or None, tuple(tensor.dims)
        self.answers: dict[Question, Any] = {
            "element_type": self.element_type,
            "rank": len(self.shape),
            "shape": self.shape,
        }
        self._graph = graph
        self._name = name

    @property
    def constant(self) -> Array | None:
        """The value; None if it is large or cannot be read.

        Raises:
            RefusedError: it cannot be read, and there is a reason.
        """
        return self._graph.value(self._name)

    @property
    def contents(self) -> Array | None:
        """The value, if it is small and may have sizes."""
        return self.small_value if self.element_type in COUNTING else None

    @property
    def small_value(self) -> Array | None:
        """The value, if it is small."""
        with suppress(RefusedError):  # a node that needs the value is refused
            return self.constant if prod(self.shape) <= LONGEST else None
        return None


class Graph:
    """A graph, whose message nobody edits meanwhile. Inner graphs see the values of enclosing graphs.

    Attributes:
        holder: the message.
        around: the enclosing graph, if there is one.
        node: the node that holds it.
        imports: the imports of a main graph.
        graph_at: returns the graph of the model at a key; None if it is not a graph of a model.
        key: its own key there.
        has_open_defaults: whether initializers of inputs are only defaults, which callers may override.
        place: its key for the resolver. It is not the graph itself, which would be a reference cycle.
    """

    def __init__(
        self,
        holder: GraphProto,
        around: Graph | None,
        node: NodeProto | None = None,
        imports: Sequence[OperatorSetIdProto] = (),
        graph_at: Callable[[GraphKey], Graph] | None = None,
        key: GraphKey = (),
        has_open_defaults: bool = False,
    ) -> None:
        """Take a graph, and for an inner graph the enclosing graph and the node that holds it."""
        self.holder = holder
        self.around = around
        self.node = node
        self.imports = imports
        self.graph_at = graph_at
        self.key = key
        self.has_open_defaults = has_open_defaults
        self.place: Hashable = object() if graph_at is None else key

    def version(self, domain: str) -> int | None:
        """The opset version of a domain; None if it is not imported."""
        if self.around is not None:
            return self.around.version(domain)
        return next((entry.version for entry in self.imports if plain_domain(entry.domain) == domain), None)

    @cached_property
    def opset(self) -> int:
        """The opset version of the default domain; 0 if it is not imported."""
        return Graph.version(self, "") or 0

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """The position of the node that computes a value, by its name."""
        positions: dict[str, int] = {}
        for at, node in enumerate(self.holder.node):
            outputs = node.output
            if len(outputs) == 1:  # iterating takes three times as long
                positions[outputs[0]] = at
            else:
                positions.update(zip(outputs, repeat(at)))
        positions.pop("", None)
        return positions

    @cached_property
    def inputs(self) -> Mapping[str, int]:
        """The positions of inputs by name."""
        return dict(zip(map(_NAME, self.holder.input), count()))

    @cached_property
    def _initializers(self) -> Mapping[str, int]:
        return dict(zip(map(_NAME, self.holder.initializer), count()))

    def defines(self, name: str) -> bool:
        """Whether the graph defines a value, which hides an outer value of the same name."""
        return name in self.positions or name in self._initializers or name in self.inputs

    def home(self, name: str) -> Graph:
        """The graph that defines a value: this one or an enclosing one."""
        return self if self.around is None or self.defines(name) else self.around.home(name)

    def producer(self, name: str) -> NodeProto | None:
        """The node that computes a value, before any edit."""
        at = self.positions.get(name)
        return None if at is None else self.holder.node[at]

    @cached_property
    def readers(self) -> Mapping[str, Sequence[NodeProto]]:
        """The nodes of this graph that read a value, by its name."""
        readers: dict[str, list[NodeProto]] = {}
        for node in self.holder.node:
            for name in node.input:
                readers.setdefault(name, []).append(node)
        return readers

    @cached_property
    def read(self) -> Collection[str]:
        """The names that nodes and outputs of this graph and its subgraphs read."""
        names = set(read_outside_nodes(self.holder))
        for node in self.holder.node:
            names.update(read_by(node) if may_hold_graphs(node) else node.input)
        return names

    def inside(self, node: NodeProto) -> Sequence[Graph]:
        """The subgraphs of a node."""
        if self.graph_at is None:
            return [Graph(graph, self, node) for _, _, graph in subgraphs(node)]
        index = next((at for at in map(self.positions.get, node.output) if at is not None), None)
        if index is None:
            return ()
        return [self.graph_at((*self.key, index, number)) for number, _, _ in subgraphs(self.holder.node[index])]

    # Constants

    def initializer(self, name: str) -> TensorProto | None:
        """The initializer of that name."""
        at = self._initializers.get(name)
        return None if at is None else self.holder.initializer[at]

    def constant_node(self, name: str) -> NodeProto | None:
        """The Constant node that yields a value; None if none does."""
        at = self._constant_nodes.get(name)
        return None if at is None else self.holder.node[at]

    @cached_property
    def _constant_nodes(self) -> Mapping[str, int]:
        """The positions of Constant nodes by the value that each yields."""
        at_and_node = [(at, self.holder.node[at]) for at in self.positions_of("Constant")]
        return {node.output[0]: at for at, node in at_and_node if node.output and node.domain in DEFAULT_DOMAINS}

    def positions_of(self, op_type: str) -> Sequence[int]:
        """The positions of the nodes of an operator, of any domain."""
        return [at for at, node in enumerate(self.holder.node) if node.op_type == op_type]

    def tensor(self, name: str) -> TensorProto | None:
        """The tensor of an initializer or Constant node; None if none has that name."""
        initializer = self.initializer(name)
        node = self.constant_node(name) if initializer is None else None
        return initializer if node is None else tensor_of(node)

    def constant_tensor(self, name: str) -> TensorProto | None:
        """The same, but None for a default that callers may override."""
        return None if self.has_open_defaults and name in self.inputs else self.tensor(name)

    def value(self, name: str) -> Array | None:
        """The value of a constant of this graph; None for any other value.

        Raises:
            RefusedError: it cannot be read.
        """
        tensor = self.constant_tensor(name)
        return None if tensor is None else value_of_tensor(tensor)

    def held(self, name: str) -> object | None:
        """The facts about a constant, or about the iteration number and condition of a Loop; None for other values.

        The object has an attribute for each `Question`.
        """
        tensor = self.constant_tensor(name)
        if tensor is not None:
            return Constant(self, tensor, name)
        is_counter = self.node is not None and self.node.op_type == "Loop" and self.inputs.get(name, 2) < 2
        kinds = TensorProto.INT64, TensorProto.BOOL
        return Constant(self, TensorProto(data_type=kinds[self.inputs[name]]), name) if is_counter else None

    # Stated types

    @cached_property
    def _value_info(self) -> Mapping[str, int]:
        """Positions in value_info by name. Holding messages instead takes five times as long."""
        return dict(zip(map(_NAME, self.holder.value_info), count()))

    @cached_property
    def _outside_nodes(self) -> Mapping[str, TypeProto]:
        """The stated types of graph inputs and graph outputs."""
        return {
            value.name: value.type
            for value in (*self.holder.output, *self.holder.input)
            # The inputs of a Scan body need not have types; inference knows them.
            if value.name not in self._value_info or type_string(value.type) is not None
        }

    def states(self, name: str) -> bool:
        """Whether the graph states a type of a value."""
        return name in self._value_info or name in self._outside_nodes

    def stated_type(self, name: str) -> StatedType:
        """The type that the graph states for a value."""
        stated = self._outside_nodes.get(name)
        if stated is None and name in self._value_info:
            stated = self.holder.value_info[self._value_info[name]].type
        return stated_type(stated)
