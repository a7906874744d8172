"""The types of one model, of single values or all at once. Local functions count as unknown operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from onnx import ModelProto, NodeProto, TypeProto

from reducelower.model.graph import may_hold_graphs, subgraphs
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.model.skeleton import DEFAULTS_SINCE
from reducelower.types.graphs import Graph, GraphKey
from reducelower.types.resolver import Resolver

__all__ = ["Inference", "infer"]


class Inference(Resolver):
    """The graphs of one model by their keys, and all facts about their values."""

    def __init__(self, model: ModelProto, *, freezes_defaults: bool = False) -> None:
        """Take a model, and whether defaults of inputs are constants."""
        super().__init__()
        self._has_open_defaults = model.ir_version >= DEFAULTS_SINCE and not freezes_defaults
        self._model = model
        self._graphs: dict[GraphKey, Graph] = {}

    def graph(self, key: GraphKey) -> Graph:
        """The graph at a key."""
        if key not in self._graphs:
            self._graphs[key] = Graph(*self.place(key))
        return self._graphs[key]

    def place(self, key: GraphKey) -> tuple[Any, ...]:
        """The arguments of `Graph` for the graph at a key."""
        if not key:
            return self._model.graph, None, None, self._model.opset_import, self.graph, key, self._has_open_defaults
        around = self.graph(key[:-2])
        node = around.holder.node[key[-2]]
        inner = next(graph for number, _, graph in subgraphs(node) if number == key[-1])
        return inner, around, node, (), self.graph, key

    def put(self, graph: Graph) -> None:
        """Let a run have a graph of its own at a key."""
        self._graphs[graph.key] = graph

    def clear(self) -> None:
        """Forget graphs and answers: they refer back here, and the cycle would keep them until garbage collection."""
        super().clear()
        self._graphs.clear()

    @cached_property
    def keys(self) -> Sequence[GraphKey]:
        """The keys of all graphs, outer ones first."""
        keys: list[GraphKey] = [()]
        for key in keys:  # grows while it is iterated
            for index, node in enumerate(self.graph(key).holder.node):
                if may_hold_graphs(node):
                    keys += [(*key, index, number) for number, _, _ in subgraphs(node)]
        return keys

    def types(self, key: GraphKey) -> Mapping[str, TypeProto]:
        """The known types of the inputs and node outputs of the graph at a key, by name; some without a rank."""
        graph = self.graph(key)
        types = {name: self.type(name, graph, may_lack_rank=True) for name in (*graph.inputs, *graph.positions)}
        return {name: each for name, each in types.items() if each is not None}

    def never_taken(self, key: GraphKey, node: NodeProto) -> str:
        """The branch that an If in the graph at a key never takes; empty unless constants and known sizes determine its
        condition."""
        is_if = node.op_type == "If" and node.domain in DEFAULT_DOMAINS and bool(node.input)
        condition = self.known(node.input[0], self.graph(key)).numbers if is_if else None
        if condition is None or len(condition) != 1:
            return ""
        return "else_branch" if condition[0] else "then_branch"


def infer(model: ModelProto) -> ModelProto:
    """State all inferable types in value_info of a model copy that is used only for its types; return the copy."""
    inference = Inference(model)
    for graph, types in [(inference.graph(key).holder, inference.types(key)) for key in inference.keys]:
        stated = {value.name: value for value in (*graph.value_info, *graph.input, *graph.output)}
        for name, each in types.items():
            value = stated[name] if name in stated else graph.value_info.add(name=name)
            value.type.CopyFrom(each)
    inference.clear()
    return model
