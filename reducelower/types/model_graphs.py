"""The graphs, subgraphs and function bodies of one model by their keys, and the types of their values."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TypeProto

from reducelower.model.calls import attributes_of_call, bind, called_function, function_id, functions_of
from reducelower.model.graph import may_hold_graphs, subgraphs
from reducelower.model.numbers import Array
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.model.skeleton import DEFAULTS_SINCE
from reducelower.types.graphs import Graph, Held
from reducelower.types.known import Known
from reducelower.types.resolver import Resolver

__all__ = ["GraphKey", "Inference", "KeyedGraph", "function_key"]

GraphKey = tuple[int, ...]
"""Positions of node and subgraph from the main graph inward; for graphs in function n it starts with -1 - n."""

_DEEPEST_CALL = 64
"""The most nested calls that are followed; only invalid models have recursive functions."""


def function_key(number: int) -> GraphKey:
    """The key of a function body, by the position of the function in the model."""
    return (-1 - number,)


class Inference:
    """The graphs of one model by their keys, and the types of its values; in functions, those that all calls share."""

    def __init__(self, model: ModelProto, *, freezes_defaults: bool = False) -> None:
        """Take a model, and whether defaults of inputs are constants."""
        self.has_open_defaults = model.ir_version >= DEFAULTS_SINCE and not freezes_defaults
        self._model = model
        self._functions = functions_of(model) if model.functions else {}
        self._graphs: dict[GraphKey, KeyedGraph] = {}
        self._bound: dict[tuple[Hashable, str], _Call] = {}

    def graph(self, key: GraphKey) -> KeyedGraph:
        """The graph or function body at a key."""
        if key not in self._graphs:
            self._graphs[key] = KeyedGraph(self, key)
        return self._graphs[key]

    def put(self, graph: KeyedGraph) -> None:
        """Replace the graph at a key by that of a run."""
        self._graphs[graph.key] = graph

    def clear(self) -> None:
        """Forget graphs and answers: they refer back here, and the cycle would keep them until garbage collection."""
        self._graphs.clear()
        self._bound.clear()
        self.__dict__.pop("resolver", None)

    def parts(
        self, key: GraphKey
    ) -> tuple[GraphProto | FunctionProto, Graph | None, NodeProto | None, Sequence[OperatorSetIdProto] | None]:
        """The message at a key, the enclosing graph and node, and the imports."""
        if len(key) < 2:
            owner = self._model.functions[-1 - key[0]] if key else self._model
            holder = owner if isinstance(owner, FunctionProto) else owner.graph
            return holder, None, None, owner.opset_import
        around = self.graph(key[:-2])
        node = around.holder.node[key[-2]]
        return next(graph for number, _, graph in subgraphs(node) if number == key[-1]), around, node, None

    def called(self, node: NodeProto, around: Graph) -> list[tuple[Graph, Sequence[str]]]:
        """The body of the function that a node calls, with the names of its outputs; empty if it calls none."""
        function = self._functions.get(called_function(node))
        depth = around.depth + 1 if isinstance(around, _Call) else 0
        if function is None or not node.output or depth > _DEEPEST_CALL:
            return []
        key = around.place, next(filter(None, node.output), "")
        if key not in self._bound:
            self._bound[key] = _Call(self, function, around, node, depth)
        return [(self._bound[key], list(function.output))]

    @cached_property
    def calls(self) -> Mapping[int, Sequence[tuple[GraphKey, NodeProto]]]:
        """The calls of each function, by its number: the key of the graph, and the node."""
        found: dict[int, list[tuple[GraphKey, NodeProto]]] = {}
        positions = {function_id(function): number for number, function in enumerate(self._model.functions)}
        for key in self.keys:
            for node in self.graph(key).holder.node:
                number = positions.get(called_function(node))
                if number is not None:
                    found.setdefault(number, []).append((key, node))
        return found

    @cached_property
    def keys(self) -> Sequence[GraphKey]:
        """The keys of all graphs and function bodies, outer ones first."""
        keys: list[GraphKey] = [(), *(function_key(number) for number in range(len(self._model.functions)))]
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
        self._model = model

    @property
    def place(self) -> GraphKey:
        """The key, which a graph of a run shares with the graph that it replaces."""
        return self.key

    def _is_default(self, name: str) -> bool:
        return not self.key and self._model.has_open_defaults and name in self.inputs

    def held(self, name: str) -> Held | None:
        """See `Graph.held`; defaults that callers may override are not constants."""
        return None if self._is_default(name) else super().held(name)

    def value(self, name: str) -> Array | None:
        """See `Graph.value`; defaults that callers may override are not constants."""
        return None if self._is_default(name) else super().value(name)

    def calls(self, name: str) -> Sequence[tuple[NodeProto, Graph, int]]:
        """See `Graph.calls`; for an input of a function, all of its calls."""
        if len(self.key) != 1 or name not in self.inputs:
            return super().calls(name)
        calls = self._model.calls.get(-1 - self.key[0], ())
        return [(node, self._model.graph(key), self.inputs[name]) for key, node in calls]

    def inside(self, node: NodeProto) -> Sequence[tuple[Graph, Sequence[str]]]:
        """The subgraphs of a node, or the body of the function it calls, each with the names of its outputs."""
        if called := self._model.called(node, self):
            return called
        index = next((at for at in map(self.positions.get, node.output) if at is not None), None)
        if index is None:
            return ()
        inner = [
            (self._model.graph((*self.key, index, number)), graph)
            for number, _, graph in subgraphs(self.holder.node[index])
        ]
        return [(view, [value.name for value in graph.output]) for view, graph in inner]


class _Call(Graph):
    """The body of a function in one call, with the attributes and inputs of that call."""

    def __init__(self, model: Inference, function: FunctionProto, around: Graph, call: NodeProto, depth: int) -> None:
        bound = FunctionProto()
        bound.CopyFrom(function)
        bind(bound.node, attributes_of_call(function, call))
        super().__init__(bound, around, call, function.opset_import)
        self._model = model
        self.depth = depth

    def inside(self, node: NodeProto) -> Sequence[tuple[Graph, Sequence[str]]]:
        return self._model.called(node, self) or super().inside(node)
