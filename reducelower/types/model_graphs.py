"""The graphs, subgraphs and function bodies of one model by their keys, and the calls of its functions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from weakref import proxy

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto

from reducelower.model.calls import attributes_of_call, bind, called_function, function_id, functions_of
from reducelower.model.graph import may_hold_graphs, subgraphs
from reducelower.model.inference.declared import declared_type
from reducelower.model.numbers import Array
from reducelower.model.schemas import plain_domain
from reducelower.model.skeleton import DEFAULTS_SINCE
from reducelower.model.value_info import StatedType, stated_type
from reducelower.types.borders import sources_outside
from reducelower.types.graphs import InnerGraph
from reducelower.types.views import Graph, Held, Source

__all__ = ["GraphKey", "ModelGraphs", "function_key"]

GraphKey = tuple[int, ...]
"""Positions of node and subgraph from the main graph inward; for graphs in function n it starts with -1 - n."""

_DEEPEST_CALL = 64
"""How many calls in each other are followed. A valid model has none of a function by itself."""


def function_key(number: int) -> GraphKey:
    """The key of a function body, by the position of the function in the model."""
    return (-1 - number,)


class ModelGraphs:
    """The graphs of one model, by their keys."""

    def __init__(
        self,
        model: ModelProto,
        element_types: Mapping[str, int],
        ranks: Mapping[str, int],
        *,
        freezes_defaults: bool,
    ) -> None:
        """Take a model, what the user declared of its values, and whether defaults of inputs are constants."""
        self.has_open_defaults = model.ir_version >= DEFAULTS_SINCE and not freezes_defaults
        self._model = model
        self._functions = functions_of(model)
        self._positions = {function_id(function): number for number, function in enumerate(model.functions)}
        self.declared = element_types, ranks
        self._graphs: dict[GraphKey, _KeyedGraph] = {}
        self._bound: dict[tuple[Hashable, str], _Call] = {}

    def graph(self, key: GraphKey) -> _KeyedGraph:
        """The graph or function body at a key."""
        if key not in self._graphs:
            if len(key) < 2:
                number = -1 - key[0] if key else 0
                holder = self._model.functions[number] if key else self._model.graph
                imports = (self._model.functions[number] if key else self._model).opset_import
                made = _KeyedGraph(self, key, holder, None, None, _versions(imports))
            else:
                around = self.graph(key[:-2])
                node = around.holder.node[key[-2]]
                holder = next(graph for number, _, graph in subgraphs(node) if number == key[-1])
                made = _KeyedGraph(self, key, holder, around, node)
            self._graphs[key] = made
        return self._graphs[key]

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
    def calls(self) -> Mapping[int, Sequence[tuple[Graph, NodeProto]]]:
        """The calls of each function, by its number."""
        found: dict[int, list[tuple[Graph, NodeProto]]] = {}
        keys: list[GraphKey] = [(), *(function_key(number) for number in range(len(self._model.functions)))]
        for key in keys:  # grows while it is iterated
            graph = self.graph(key)
            for index, node in enumerate(graph.holder.node):
                number = self._positions.get(called_function(node))
                if number is not None:
                    found.setdefault(number, []).append((graph, node))
                if may_hold_graphs(node):
                    keys += [(*key, index, number) for number, _, _ in subgraphs(node)]
        return found


class _KeyedGraph(InnerGraph):
    """A graph of a model that has a key."""

    def __init__(
        self,
        model: ModelGraphs,
        key: GraphKey,
        holder: GraphProto | FunctionProto,
        around: Graph | None,
        node: NodeProto | None,
        versions: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(holder, around, node, versions)
        # The model has its graphs: strong references back would keep its weights until the garbage collector runs.
        self._model: ModelGraphs = proxy(model)
        self._key = key

    @property
    def place(self) -> Hashable:
        return self._key

    def _is_default(self, name: str) -> bool:
        return not self._key and self._model.has_open_defaults and name in self.inputs

    def held(self, name: str) -> Held | None:
        return None if self._is_default(name) else super().held(name)

    def value(self, name: str) -> Array | None:
        return None if self._is_default(name) else super().value(name)

    def stated_type(self, name: str) -> StatedType:
        return stated_type(declared_type(name, self._stated(name), *self._model.declared))

    def handed(self, name: str) -> Sequence[Source]:
        if len(self._key) != 1 or name not in self.inputs:
            return super().handed(name)
        calls = self._model.calls.get(-1 - self._key[0], ())
        given = [sources_outside(node, graph, self.inputs[name]) for graph, node in calls]
        return list(chain(*given)) if all(given) else ()

    def inside(self, node: NodeProto) -> Sequence[tuple[Graph, Sequence[str]]]:
        if called := self._model.called(node, self):
            return called
        index = next((at for at in map(self.positions.get, node.output) if at is not None), None)
        if index is None:
            return ()
        inner = [
            (self._model.graph((*self._key, index, number)), graph)
            for number, _, graph in subgraphs(self.holder.node[index])
        ]
        return [(view, [value.name for value in graph.output]) for view, graph in inner]


class _Call(InnerGraph):
    """The body of a function in one call, with the attributes and operands of that call."""

    def __init__(self, model: ModelGraphs, function: FunctionProto, around: Graph, call: NodeProto, depth: int) -> None:
        bound = FunctionProto()
        bound.CopyFrom(function)
        bind(bound.node, attributes_of_call(function, call))
        super().__init__(bound, around, call, _versions(function.opset_import))
        self._model: ModelGraphs = proxy(model)
        self.depth = depth

    def inside(self, node: NodeProto) -> Sequence[tuple[Graph, Sequence[str]]]:
        return self._model.called(node, self) or super().inside(node)


def _versions(imports: Sequence[OperatorSetIdProto]) -> Mapping[str, int]:
    return {plain_domain(entry.domain): entry.version for entry in imports}
