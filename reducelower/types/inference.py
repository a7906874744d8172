"""The types of all values of a model; unstated ones are resolved on demand."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from onnx import GraphProto, ModelProto, NodeProto, TypeProto

from reducelower.model.graph import may_hold_graphs
from reducelower.model.inference import protected
from reducelower.model.inference.declared import declare
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.model.skeleton import LARGEST_CONSTANT, skeleton
from reducelower.model.value_info import NOTHING_STATED, stated_type
from reducelower.types.known import Known
from reducelower.types.model_graphs import GraphKey, ModelGraphs
from reducelower.types.resolver import Resolver

if TYPE_CHECKING:
    from reducelower.model.document import Document
    from reducelower.model.numbers import Array

__all__ = ["Inference", "infer", "infer_strictly", "inference_of"]


class Inference(ModelGraphs):
    """The types of a model's values, also in subgraphs, and in functions if all calls agree."""

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


def inference_of(
    document: Document,
    element_types: Mapping[str, int],
    ranks: Mapping[str, int],
    *,
    freezes_defaults: bool,
) -> Inference:
    """The types of a document, for one attempt, with the element types and ranks that the user declared, by name."""

    def made() -> Inference:
        message = document.message
        if element_types or ranks:
            message = skeleton(message, LARGEST_CONSTANT)
            declare(message.graph, element_types, ranks)
            for function in message.functions:
                declare(function, element_types, ranks)
        return Inference(message, freezes_defaults=freezes_defaults)

    return document.shared((frozenset(element_types.items()), frozenset(ranks.items()), freezes_defaults), made)


def infer(model: ModelProto) -> ModelProto:
    """State all inferable types in value_info of a model copy that is used only for its types; return the copy."""
    inference = Inference(model)
    outside_functions = (key for key in inference.keys if not key or key[0] >= 0)
    for graph, types in [(inference.graph(key).holder, inference.types(key)) for key in outside_functions]:
        assert isinstance(graph, GraphProto)
        _state(graph, types)
    return model


def _state(graph: GraphProto, types: Mapping[str, TypeProto]) -> None:
    stated = {value.name: value for value in (*graph.value_info, *graph.input, *graph.output)}
    for name, each in types.items():
        value = stated[name] if name in stated else graph.value_info.add(name=name)
        value.type.CopyFrom(each)


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
    for node in graph.node:
        if may_hold_graphs(node):
            return False
        for name in filter(None, node.output):
            stated = types.get(name, NOTHING_STATED)
            if not stated.element_type or stated.sizes is None or None in stated.sizes:
                return False
    return True
