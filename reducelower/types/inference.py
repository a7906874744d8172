"""The types of one model, of single values or all at once. Local functions count as unknown operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from onnx import GraphProto, ModelProto, NodeProto, TypeProto

from reducelower.model import protected
from reducelower.model.graph import may_hold_graphs, subgraphs
from reducelower.model.schemas import DEFAULT_DOMAINS, element_type_name, parse_element_type
from reducelower.model.skeleton import DEFAULTS_SINCE, names_in
from reducelower.model.value_info import NOTHING_STATED, stated_type
from reducelower.text import did_you_mean
from reducelower.types.graphs import Graph, GraphKey
from reducelower.types.known import Question
from reducelower.types.resolver import Resolver

__all__ = ["Inference", "contradiction", "infer", "infer_strictly"]


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
            main = self._model.graph, None, None, self._model.opset_import, self.graph
            self._graphs[key] = self._inner(key) if key else Graph(*main)
            self._graphs[key].has_open_defaults = not key and self._has_open_defaults
        return self._graphs[key]

    def _inner(self, key: GraphKey) -> Graph:
        around = self.graph(key[:-2])
        node = around.holder.node[key[-2]]
        inner = next(graph for number, _, graph in subgraphs(node) if number == key[-1])
        return Graph(inner, around, node, (), self.graph, key)

    def put(self, graph: Graph) -> None:
        """Replace the graph at a key by that of a run."""
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


def contradiction(model: ModelProto, element_types: Mapping[str, str], ranks: Mapping[str, int]) -> str:
    """Return a sentence about a declaration that contradicts the model, or an empty string.

    Several graphs may use one name. A declaration is accepted if it equals what is known in one of them, or fills it
    in.
    """
    inference = Inference(model)
    types = {name: parse_element_type(spelled) for name, spelled in element_types.items()}
    within = [inference.graph(key) for key in inference.keys]
    kinds: tuple[tuple[str, Question, Mapping[str, int], Callable[[int], str]], ...] = (
        ("element type", "element_type", types, element_type_name),
        ("rank", "rank", ranks, str),
    )
    for what, question, declared, spelled in kinds:
        for name, value in sorted(declared.items()):
            known = [inference.ask(graph, question, name) for graph in within if graph.defines(name)]
            if not known:
                near = did_you_mean(name, names_in(model))
                return f"no value of the model is named {name!r}, whose {what} is declared{near}"
            if not {None, value}.intersection(known):
                return f"the {what} of {name!r} is {spelled(min(known))}, and {spelled(value)} is declared of it"
    return ""


def infer(model: ModelProto) -> ModelProto:
    """State all inferable types in value_info of a model copy that is used only for its types; return the copy."""
    inference = Inference(model)
    for graph, types in [(inference.graph(key).holder, inference.types(key)) for key in inference.keys]:
        stated = {value.name: value for value in (*graph.value_info, *graph.input, *graph.output)}
        for name, each in types.items():
            value = stated[name] if name in stated else graph.value_info.add(name=name)
            value.type.CopyFrom(each)
    return model


def infer_strictly(model: ModelProto) -> tuple[ModelProto, str]:
    """Infer types in a model copy, and return it with the objection of strict inference, empty if there is none.

    Strict inference also checks the model with our inferred types. They may be more than it infers itself, and prove a
    stated type wrong.
    """
    try:
        inferred = protected.infer_shapes(model, check_type=True, strict_mode=True)
        if _states_all(inferred.graph):
            return inferred, ""
        data = inferred.SerializeToString()
        infer(inferred)
        if inferred.SerializeToString() != data:
            protected.infer_shapes(inferred, check_type=True, strict_mode=True)
    except Exception as error:  # inference raises several types
        return infer(model), " ".join(str(error).split()) or type(error).__name__
    return inferred, ""


def _states_all(graph: GraphProto) -> bool:
    """Whether a graph has no subgraphs and states the types of all node outputs; sizes may be names."""
    types = {value.name: stated_type(value.type) for value in (*graph.value_info, *graph.output)}
    made = [types.get(name, NOTHING_STATED) for node in graph.node for name in node.output if name]
    open_types = [each for each in made if not each.element_type or each.sizes is None or None in each.sizes]
    return not open_types and not any(map(may_hold_graphs, graph.node))
