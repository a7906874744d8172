"""The types of all values of a model: those that it leaves open are worked out when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TypeProto, shape_inference

from reducelower.model.graph import may_hold_graphs
from reducelower.model.inference import protected
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.model.skeleton import skeleton
from reducelower.model.text import one_line
from reducelower.model.value_info import NOTHING_STATED, stated_type
from reducelower.types.known import ContradictionError, Known
from reducelower.types.model_graphs import GraphKey, ModelGraphs
from reducelower.types.resolver import Resolver

if TYPE_CHECKING:
    from reducelower.model.document import Document
    from reducelower.model.numbers import Array

__all__ = ["Inference", "infer", "infer_strictly", "inference_of"]


class Inference:
    """The types of a model's values, in subgraphs and functions too, as far as all calls of these agree."""

    def __init__(
        self,
        source: Callable[[], ModelProto],
        element_types: Mapping[str, int] | None = None,
        ranks: Mapping[str, int] | None = None,
        *,
        freezes_defaults: bool = False,
        lenient: bool = True,
        keeps_answers: bool = False,
    ) -> None:
        """Prepare inference; nothing is looked at yet.

        Args:
            source: gives the model, the same each time.
            element_types: element types that the user declared, by name.
            ranks: ranks that the user declared, by name.
            freezes_defaults: whether types may follow from the default values of inputs.
            lenient: whether to ignore stated types that contradict what nodes yield, instead of raising.
            keeps_answers: whether all runs that ask share one resolver.
        """
        self._source = source
        self._element_types = element_types or {}
        self._ranks = ranks or {}
        self._freezes_defaults = freezes_defaults
        self.is_lenient = lenient
        self._of_runs = Resolver(objects=not lenient) if keeps_answers else None
        self._objection: str | None = None

    @cached_property
    def graphs(self) -> ModelGraphs:
        """The graphs of the model, before any rewrite, by their keys."""
        return ModelGraphs(self._source(), self._element_types, self._ranks, freezes_defaults=self._freezes_defaults)

    def holder(self, key: GraphKey) -> GraphProto | FunctionProto:
        """The graph or function body at a key, before any rewrite."""
        return self.graphs.graph(key).holder

    def type(self, key: GraphKey, name: str) -> TypeProto | None:
        """The type of a value of the graph at a key; None if unknown. The rank may be left open."""
        return self._resolver.type(name, self.graphs.graph(key), may_lack_rank=True)

    def known(self, key: GraphKey, name: str) -> Known:
        """All that is known about a value of the graph at a key."""
        return self._resolver.known(name, self.graphs.graph(key))

    def constant(self, key: GraphKey, name: str) -> Array | None:
        """The value of what depends on nothing but constants and known sizes; see `Resolver.constant`."""
        return self._resolver.constant(name, self.graphs.graph(key))

    def never_taken(self, key: GraphKey, node: NodeProto) -> str:
        """The branch that an If in the graph at a key never takes, since constants and known sizes tell its condition;
        empty if there is none."""
        is_if = node.op_type == "If" and node.domain in DEFAULT_DOMAINS and bool(node.input)
        condition = self.known(key, node.input[0]).numbers if is_if else None
        if condition is None or len(condition) != 1:
            return ""
        return "else_branch" if condition[0] else "then_branch"

    def types(self, key: GraphKey) -> Mapping[str, TypeProto]:
        """The types of the inputs and of what the nodes yield in the graph at a key, by name."""
        graph = self.graphs.graph(key)
        found = {name: self.type(key, name) for name in (*graph.inputs, *graph.positions)}
        return {name: each for name, each in found.items() if each is not None}

    @cached_property
    def _resolver(self) -> Resolver:
        return Resolver(objects=not self.is_lenient)

    def resolver_of_run(self) -> Resolver:
        """What answers the questions of a run: a resolver of its own, or the one that runs share.

        What a run trusts of stated types it notes where it first asks, so shared answers are for plans alone.
        """
        return Resolver(objects=not self.is_lenient) if self._of_runs is None else self._of_runs

    def check(self) -> None:
        """Check all that the model states, once, unless contradictions are ignored.

        Raises:
            ContradictionError: strict shape inference objects to it.
        """
        if self.is_lenient:
            return
        if self._objection is None:
            try:
                protected.infer_shapes(skeleton(self._source()), strict_mode=True)
                self._objection = ""
            except Exception as error:
                # A model that inference cannot even read has no types; what needs one is refused and names the value.
                self._objection = one_line(error) if isinstance(error, shape_inference.InferenceError) else ""
        if self._objection:
            raise ContradictionError(self._objection)


def inference_of(
    document: Document,
    element_types: Mapping[str, int],
    ranks: Mapping[str, int],
    *,
    freezes_defaults: bool,
    lenient: bool,
) -> Inference:
    """The types of a document, for one attempt; arguments as of `Inference`."""
    made = partial(
        Inference, element_types=element_types, ranks=ranks, freezes_defaults=freezes_defaults, lenient=lenient
    )
    if not document.shares_types:
        return made(lambda: document.message)
    message = document.message  # not the document, which keeps what is shared
    key = frozenset(element_types.items()), frozenset(ranks.items()), freezes_defaults, lenient
    return document.shared(key, lambda: made(lambda: message, keeps_answers=True))


def infer(model: ModelProto) -> ModelProto:
    """State in value_info all types that can be worked out, in a model copy used for its types only; return it."""
    inference = Inference(lambda: model)
    outside_functions = (key for key in inference.graphs.keys if not key or key[0] >= 0)
    for graph, types in [(inference.holder(key), inference.types(key)) for key in outside_functions]:
        assert isinstance(graph, GraphProto)
        _state(graph, types)
    return model


def _state(graph: GraphProto, types: Mapping[str, TypeProto]) -> None:
    stated = {value.name: value for value in (*graph.value_info, *graph.input, *graph.output)}
    for name, each in types.items():
        value = stated[name] if name in stated else graph.value_info.add(name=name)
        value.type.CopyFrom(each)


def infer_strictly(model: ModelProto) -> tuple[ModelProto, str]:
    """Infer types in a model copy, and return them with the objection of strict inference, empty if there is none.

    The objection may also be to the model with these types stated: they may be more than strict inference finds by
    itself, and show that another stated type is wrong.
    """
    try:
        found = protected.infer_shapes(model, check_type=True, strict_mode=True)
        if _states_all(found.graph):
            return found, ""
        data = found.SerializeToString()
        infer(found)
        if found.SerializeToString() != data:
            protected.infer_shapes(found, check_type=True, strict_mode=True)
    except Exception as error:  # inference raises several types
        return infer(model), " ".join(str(error).split()) or type(error).__name__
    return found, ""


def _states_all(graph: GraphProto) -> bool:
    """Whether a graph without subgraphs states the types of all that its nodes yield, up to the names of sizes."""
    types = {value.name: stated_type(value.type) for value in (*graph.value_info, *graph.output)}
    for node in graph.node:
        if may_hold_graphs(node):
            return False
        for name in filter(None, node.output):
            known = types.get(name, NOTHING_STATED)
            if not known.element_type or known.sizes is None or None in known.sizes:
                return False
    return True
