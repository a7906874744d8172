"""The graphs of one model by their keys, and the types of their values. Local functions count as unknown operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from onnx import GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TypeProto

from reducelower.model.graph import may_hold_graphs, subgraphs
from reducelower.model.numbers import Array
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.model.skeleton import DEFAULTS_SINCE
from reducelower.types.graphs import Graph, Held
from reducelower.types.known import Constant, Known
from reducelower.types.resolver import Resolver

__all__ = ["GraphKey", "Inference", "KeyedGraph"]

GraphKey = tuple[int, ...]
"""Positions of node and subgraph from the main graph inward."""


class Inference:
    """The graphs of one model by their keys, and the types of their values."""

    def __init__(self, model: ModelProto, *, freezes_defaults: bool = False) -> None:
        """Take a model, and whether defaults of inputs are constants."""
        self.has_open_defaults = model.ir_version >= DEFAULTS_SINCE and not freezes_defaults
        self._model = model
        self._graphs: dict[GraphKey, KeyedGraph] = {}

    def graph(self, key: GraphKey) -> KeyedGraph:
        """The graph at a key."""
        if key not in self._graphs:
            self._graphs[key] = KeyedGraph(self, key)
        return self._graphs[key]

    def put(self, graph: KeyedGraph) -> None:
        """Replace the graph at a key by that of a run."""
        self._graphs[graph.key] = graph

    def clear(self) -> None:
        """Forget graphs and answers: they refer back here, and the cycle would keep them until garbage collection."""
        self._graphs.clear()
        self.__dict__.pop("resolver", None)

    def parts(
        self, key: GraphKey
    ) -> tuple[GraphProto, Graph | None, NodeProto | None, Sequence[OperatorSetIdProto] | None]:
        """The message at a key, the enclosing graph and node, and the imports."""
        if not key:
            return self._model.graph, None, None, self._model.opset_import
        around = self.graph(key[:-2])
        node = around.holder.node[key[-2]]
        return next(graph for number, _, graph in subgraphs(node) if number == key[-1]), around, node, None

    @cached_property
    def keys(self) -> Sequence[GraphKey]:
        """The keys of all graphs, outer ones first."""
        keys: list[GraphKey] = [()]
        for key in keys:  # grows while it is iterated
            for index, node in enumerate(self.graph(key).holder.node):
                if may_hold_graphs(node):
                    keys += [(*key, index, number) for number, _, _ in subgraphs(node)]
        return keys

    # Types

    @cached_property
    def resolver(self) -> Resolver:
        """Answers all questions."""
        return Resolver()

    def type(self, key: GraphKey, name: str) -> TypeProto | None:
        """The type of a value of the graph at a key, possibly without its rank; None if unknown."""
        return self.resolver.type(name, self.graph(key), may_lack_rank=True)

    def known(self, key: GraphKey, name: str) -> Known:
        """All facts about a value of the graph at a key."""
        return self.resolver.known(name, self.graph(key))

    def constant(self, key: GraphKey, name: str) -> Array | None:
        """The contents of a value of the graph at a key if it depends only on constants and known sizes; None if large.

        Raises:
            RefusedError: a constant cannot be read.
        """
        return self.resolver.ask(self.graph(key), "constant", name)  # type: ignore[no-any-return]

    def never_taken(self, key: GraphKey, node: NodeProto) -> str:
        """The branch that an If in the graph at a key never takes; empty unless constants and known sizes determine its
        condition."""
        is_if = node.op_type == "If" and node.domain in DEFAULT_DOMAINS and bool(node.input)
        condition = self.known(key, node.input[0]).numbers if is_if else None
        if condition is None or len(condition) != 1:
            return ""
        return "else_branch" if condition[0] else "then_branch"

    def types(self, key: GraphKey) -> Mapping[str, TypeProto]:
        """The known types of the inputs and node outputs of the graph at a key, by name."""
        graph = self.graph(key)
        types = {name: self.type(key, name) for name in (*graph.inputs, *graph.positions)}
        return {name: each for name, each in types.items() if each is not None}


class KeyedGraph(Graph):
    """A graph of a model that has a key."""

    def __init__(self, model: Inference, key: GraphKey) -> None:
        """Take the graph at a key."""
        super().__init__(*model.parts(key))
        self.key = key
        self.place = key  # which a graph of a run shares with the graph that it replaces
        self._model = model

    def _is_default(self, name: str) -> bool:
        return not self.key and self._model.has_open_defaults and name in self.inputs

    def held(self, name: str) -> Held | Constant | None:
        """See `Graph.held`; defaults that callers may override are not constants."""
        return None if self._is_default(name) else super().held(name)

    def value(self, name: str) -> Array | None:
        """See `Graph.value`; defaults that callers may override are not constants."""
        return None if self._is_default(name) else super().value(name)

    def inside(self, node: NodeProto) -> Sequence[Graph]:
        """The subgraphs of a node."""
        index = next((at for at in map(self.positions.get, node.output) if at is not None), None)
        if index is None:
            return ()
        return [self._model.graph((*self.key, index, number)) for number, _, _ in subgraphs(self.holder.node[index])]
