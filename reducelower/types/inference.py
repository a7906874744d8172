"""All types of a model at once, for those who need more than single values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from onnx import GraphProto, ModelProto, TypeProto

from reducelower.model.graph import may_hold_graphs
from reducelower.model.inference import protected
from reducelower.model.inference.declared import declare, names_in
from reducelower.model.schemas import element_type_name, parse_element_type
from reducelower.model.skeleton import LARGEST_CONSTANT, skeleton
from reducelower.model.text import did_you_mean
from reducelower.model.value_info import NOTHING_STATED, stated_type
from reducelower.types.known import Question
from reducelower.types.model_graphs import Inference

if TYPE_CHECKING:
    from reducelower.model.document import Document

__all__ = ["contradiction", "infer", "infer_strictly", "inference_of"]


def inference_of(
    document: Document,
    element_types: Mapping[str, str],
    ranks: Mapping[str, int],
    *,
    freezes_defaults: bool,
) -> Inference:
    """The types of a document, for one attempt, with the element types and ranks that the user declared, by name."""
    message = document.message
    if element_types or ranks:
        message = skeleton(message, LARGEST_CONSTANT)
        declare(message, _numbers_of(element_types), ranks)
    return Inference(message, freezes_defaults=freezes_defaults)


def contradiction(model: ModelProto, element_types: Mapping[str, str], ranks: Mapping[str, int]) -> str:
    """Return a sentence about a declaration that contradicts the model, or an empty string.

    Several graphs may use one name. A declaration is accepted if it equals what is known in one of them, or fills it
    in.
    """
    inference = Inference(model)
    graphs = [inference.graph(key) for key in inference.keys]
    kinds: tuple[tuple[str, Question, Mapping[str, int], Callable[[int], str]], ...] = (
        ("element type", "element_type", _numbers_of(element_types), element_type_name),
        ("rank", "rank", ranks, str),
    )
    for what, question, declared, spelled in kinds:
        for name, value in sorted(declared.items()):
            known = [inference.ask(graph, question, name) for graph in graphs if graph.defines(name)]
            if not known:
                near = did_you_mean(name, names_in(model))
                return f"no value of the model is named {name!r}, whose {what} is declared{near}"
            if not {None, value}.intersection(known):
                return f"the {what} of {name!r} is {spelled(min(known))}, and {spelled(value)} is declared of it"
    return ""


def _numbers_of(element_types: Mapping[str, str]) -> Mapping[str, int]:
    return {name: parse_element_type(spelled) for name, spelled in element_types.items()}


def infer(model: ModelProto) -> ModelProto:
    """State all inferable types in value_info of a model copy that is used only for its types; return the copy."""
    inference = Inference(model)
    for graph, types in [(inference.graph(key).holder, inference.types(key)) for key in inference.keys]:
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
