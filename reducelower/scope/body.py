"""The scope of the few nodes that replace one node, and of the graphs inside them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from onnx import (
    AttributeProto,
    GraphProto,
    NodeProto,
    TensorProto,
    TensorShapeProto,
    TypeProto,
    ValueInfoProto,
    numpy_helper,
)

from reducelower.model.build import make_node
from reducelower.model.element_types import Told, follow, told_by
from reducelower.model.graph import read_from_outside, subgraphs
from reducelower.model.inference import infer_body
from reducelower.model.schemas import element_type_name, type_string
from reducelower.model.value_info import sizes, without_made_up_symbols
from reducelower.scope.fold import Folding
from reducelower.scope.graph import LARGEST_SHAPE, as_vector
from reducelower.scope.node import NodeScope
from reducelower.scope.ranks import Followed, Ranks
from reducelower.scope.scope import Scope

if TYPE_CHECKING:
    from reducelower.model.numbers import Array

__all__ = ["AnyScope", "BodyScope", "InnerScope"]

AnyScope: TypeAlias = "NodeScope | BodyScope | InnerScope"
"""Where a node stands that is to be made legal: in the model, or among those that replace one of it."""


class _Inside(Scope):
    """A scope inside another: it answers for the values it defines, and hands on every other question."""

    is_made = True
    parent: Scope
    node_scope: NodeScope
    """The scope of the node of the model that all this comes in place of."""

    def __init__(self, parent: NodeScope | _Inside, opset: int) -> None:
        self.parent = parent
        self.node_scope = parent if isinstance(parent, NodeScope) else parent.node_scope
        self.opset = opset
        self.target_opset = parent.target_opset
        self.is_last_attempt = parent.is_last_attempt

    @abstractmethod
    def defines(self, name: str) -> bool:
        """Whether a value is brought about here."""

    @abstractmethod
    def own_type(self, name: str) -> TypeProto | None:
        """The type of a value that is defined here; None where that is not known."""

    # Types

    def type(self, name: str) -> TypeProto | None:
        """The type of a value."""
        # The last nodes yield the outputs of the node they replace, whose types the graph around knows.
        found = self.own_type(name) if self.defines(name) else None
        return found if found is not None else self.parent.type(name)

    def type_string(self, name: str) -> str | None:
        """The type of a value as schemas spell it."""
        declared = self.node_scope.declared_element_type(name)
        if declared is not None:
            return f"tensor({element_type_name(declared)})"
        found = self.own_type(name) if self.defines(name) else None
        spelt = None if found is None else type_string(found)
        return self.parent.type_string(name) if spelt is None else spelt

    def element_type(self, name: str) -> int | None:
        """The element type of a tensor."""
        declared = self.node_scope.declared_element_type(name)
        if declared is not None:
            return declared
        found = self.own_type(name) if self.defines(name) else None
        if found is not None and found.WhichOneof("value") == "tensor_type" and found.tensor_type.elem_type:
            return found.tensor_type.elem_type
        return self.parent.element_type(name)

    def shape(self, name: str) -> tuple[int | None, ...] | None:
        """The shape of a tensor."""
        found = self.own_type(name) if self.defines(name) else None
        known = sizes(found)
        return self.parent.shape(name) if known is None else tuple(known)

    def rank(self, name: str) -> int | None:
        """The number of dimensions of a tensor."""
        declared = self.node_scope.declared_rank(name)
        if declared is not None:
            return declared
        if not self.defines(name):
            return self.parent.rank(name)
        found = self.shape(name)
        return None if found is None else len(found)

    # All else

    def constant(self, name: str) -> Array | None:
        """The value of a constant."""
        return self.parent.constant(name)

    def reference(self, name: str) -> AttributeProto | None:
        """The attribute of the function that a Constant node yields."""
        return self.parent.reference(name)

    def written_as(self, name: str) -> str:
        """How a value is defined."""
        return "dynamic" if self.defines(name) else self.parent.written_as(name)

    def made_by(self, name: str) -> str:
        """The operator that yields a value."""
        return "" if self.defines(name) else self.parent.made_by(name)

    def is_read(self, name: str) -> bool:
        """Whether anything reads a value."""
        return self.parent.is_read(name)

    def is_handed_by_callers(self, name: str) -> bool:
        """Whether a value is an input of the function around."""
        return self.parent.is_handed_by_callers(name)

    def type_inside(self, node: NodeProto, number: int, name: str) -> TypeProto | None:
        """The inferred type of a value in a subgraph of a node."""
        return self.parent.type_inside(node, number, name)

    def fresh(self, stem: str, tail: str) -> str:
        """A name for a new value."""
        return self.node_scope.fresh(stem, tail)

    def add_constant(self, value: Array, tail: str) -> str:
        """Add the constant to the graph around."""
        return self.node_scope.add_constant(value, tail)

    def add_reference(self, attribute: AttributeProto, value: str, tail: str) -> str:
        """Add the Constant node to the function around."""
        return self.node_scope.add_reference(attribute, value, tail)

    def adopt_initializer(self, name: str, tensor: TensorProto) -> None:
        """Let an initializer of the graph around hold a value."""
        self.node_scope.adopt_initializer(name, tensor)

    def declare(self, name: str, element_type: int) -> None:
        """State the element type of a value that a rewrite makes."""
        self.node_scope.declare(name, element_type)

    def state_type(self, name: str) -> None:
        """Let the graph around state the type of a value."""
        self.node_scope.state_type(name)

    def release(self, *names: str) -> None:
        """Note that constants of the graph around are no longer read."""
        self.parent.release(*(name for name in names if not self.defines(name)))


class BodyScope(_Inside):
    """The nodes that replace one node, standing in the scope of the node they replace.

    What they add goes to the graph around them; the types of what they compute come from inference over just them.
    """

    def __init__(self, around: NodeScope | _Inside, nodes: list[NodeProto], opset: int) -> None:
        """Open the scope of replacement nodes written for an opset version."""
        super().__init__(around, opset)
        # As they were written: making them legal edits them in place.
        self.nodes = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
        self._producers = {name: node for node in self.nodes for name in node.output if name}
        self._constants: dict[str, Array | None] = {}
        self._folding = Folding()
        self._told_types: dict[str, int] = {}
        self._ranks: dict[str, int | None] = {}
        self.followed: Followed = {}

    def defines(self, name: str) -> bool:
        """Whether one of the nodes yields a value."""
        return name in self._producers

    # Constants among the nodes

    def constant(self, name: str) -> Array | None:
        """The value of a constant, which the nodes may compute."""
        if not self.defines(name):
            return self.parent.constant(name)
        if name not in self._constants:
            self._constants[name] = self._folding.value(name, self)
        return self._constants[name]

    def home(self, name: str) -> BodyScope:
        """Here: what comes from around the nodes is known whole, or not at all."""
        return self

    def whole(self, name: str) -> Array | None:
        """The value of a Constant node here, or of any constant around; None where the nodes compute it."""
        node = self.producer(name)
        if node is None:
            return self.parent.constant(name)
        values = self.node_scope.graph.ground.values
        return values[values.number_of_attribute(node.attribute[0])] if _is_constant(node) else None

    def producer(self, name: str) -> NodeProto | None:
        """The node that yields a value."""
        return self._producers.get(name)

    def reference(self, name: str) -> AttributeProto | None:
        """The attribute of the function that a Constant node yields."""
        node = self.producer(name)
        if node is None:
            return self.parent.reference(name)
        return next((each for each in node.attribute if each.ref_attr_name), None) if _is_constant(node) else None

    def written_as(self, name: str) -> str:
        """How a value is defined."""
        node = self.producer(name)
        if node is None:
            return self.parent.written_as(name)
        return "constant" if _is_constant(node) else "dynamic"

    def made_by(self, name: str) -> str:
        """The operator that yields a value."""
        node = self.producer(name)
        return self.parent.made_by(name) if node is None else node.op_type

    def is_read(self, name: str) -> bool:
        """Whether one of the nodes reads a value, or anything outside."""
        return any(name in read_from_outside(node) for node in self.nodes) or self.parent.is_read(name)

    def is_handed_by_callers(self, name: str) -> bool:
        """Whether a value is an input of the function around."""
        return not self.defines(name) and self.parent.is_handed_by_callers(name)

    # Ranks

    def rank(self, name: str) -> int | None:
        """The number of dimensions of a tensor."""
        if self.defines(name) and name not in self._ranks:
            self.followed = {}  # each that is asked for asks what is around anew, so that the memo sees it
            self._ranks[name] = Ranks().rank(name, self)
        found = self._ranks.get(name)
        return super().rank(name) if found is None else found

    def declared_rank(self, name: str) -> int | None:
        """The rank of a value that the user declared, or that is known from around the nodes."""
        return self.node_scope.declared_rank(name) if self.defines(name) else self.parent.rank(name)

    def stated_rank(self, name: str) -> int | None:
        """None: nodes that come in state nothing."""

    def given_shape(self, name: str) -> tuple[int | None, ...] | None:
        """The shape of a constant among the nodes, or of what comes from around them."""
        if not self.defines(name):
            return self.parent.shape(name)
        value = self.whole(name)
        return None if value is None else value.shape

    def given_vector(self, name: str) -> list[int] | None:
        """The value of a constant that is a vector of integers."""
        return as_vector(self.whole(name))

    # Types

    def type_string(self, name: str) -> str | None:
        """The type of a value as schemas spell it."""
        told = follow(name, self._told, self._told_types) if self.defines(name) else 0
        return f"tensor({element_type_name(told)})" if told else super().type_string(name)

    def element_type(self, name: str) -> int | None:
        """The element type of a tensor."""
        return (follow(name, self._told, self._told_types) if self.defines(name) else 0) or super().element_type(name)

    def _told(self, name: str) -> Told:
        """What the nodes tell of an element type without shape inference; see `follow`."""
        declared = self.node_scope.declared_element_type(name)
        if declared is not None:
            return declared
        node = self.producer(name)
        return self.parent.element_type(name) or 0 if node is None else told_by(node, name, self.opset)

    def own_type(self, name: str) -> TypeProto | None:
        """The type that inference over the nodes finds."""
        return self._types.get(name)

    def state_type(self, name: str) -> None:
        """Let the graph around state the type of a value, which may be one that the nodes bring in."""
        if not self.node_scope.is_new(name):
            self.parent.state_type(name)
        elif (found := self.type(name)) is not None:
            self.node_scope.types[name] = without_made_up_symbols(found)

    def types_inside(self, node: NodeProto, number: int) -> list[ValueInfoProto]:
        """The types of what a subgraph of one of the nodes, by its number among them, takes and computes."""
        graph = self._graph_inside(node, number)
        # An input may be stated without a type, which the values then tell.
        return (
            [] if graph is None else [*(value for value in graph.input if type_string(value.type)), *graph.value_info]
        )

    def type_inside(self, node: NodeProto, number: int, name: str) -> TypeProto | None:
        """The inferred type of a value in a subgraph of one of the nodes."""
        graph = self._graph_inside(node, number)
        values = () if graph is None else (*graph.value_info, *graph.input, *graph.output)
        return next((value.type for value in values if value.name == name), None)

    def _graph_inside(self, node: NodeProto, number: int) -> GraphProto | None:
        for inferred in self._inferred.node:
            if inferred.op_type == node.op_type and list(inferred.output) == list(node.output):
                return next(graph for index, _, graph in subgraphs(inferred) if index == number)
        return None

    def _type_outside(self, name: str) -> TypeProto | None:
        """The type of a value around the nodes; a rank that the user declared is part of it."""
        found = self.parent.type(name)
        if found is None or not found.HasField("tensor_type") or found.tensor_type.HasField("shape"):
            return found
        rank = self.parent.rank(name)
        if rank is None:
            return found
        ranked = TypeProto.FromString(found.SerializeToString())
        ranked.tensor_type.shape.dim.extend(TensorShapeProto.Dimension() for _ in range(rank))
        ranked.tensor_type.shape.SetInParent()
        return ranked

    @cached_property
    def _types(self) -> Mapping[str, TypeProto]:
        return {value.name: value.type for value in self._inferred.value_info}

    def how_to_declare(self, name: str, what: Literal["type", "rank"]) -> str:
        """The hint for a value of the model: what the nodes compute follows from what they read."""
        if not self.defines(name):
            return self.parent.how_to_declare(name, what)
        for outer in self._read_outside():
            known = self.parent.element_type(outer) if what == "type" else self.parent.rank(outer)
            if known is None:
                return self.parent.how_to_declare(outer, what)
        return "state the types and shapes of what the node reads"

    def _read_outside(self) -> list[str]:
        """The values that the nodes, and graphs inside them, read and do not define themselves."""
        read = {name for node in self.nodes for name in read_from_outside(node)}
        return sorted(read - self._producers.keys())

    @cached_property
    def _inferred(self) -> GraphProto:
        read = self._read_outside()
        known = {outer: found for outer in read if (found := self._type_outside(outer)) is not None}
        constants = list(self._shapes_among(known))
        for constant in constants:
            del known[constant.output[0]]
        return infer_body([*constants, *self.nodes], known, self.opset)

    def _shapes_among(self, known: Mapping[str, TypeProto]) -> Iterator[NodeProto]:
        """Constant nodes for what inference reads the values of: shapes and axes, which are integers."""
        for name, found in known.items():
            if found.tensor_type.elem_type in (TensorProto.INT32, TensorProto.INT64):
                value = self.parent.constant(name)
                if value is not None and value.size <= LARGEST_SHAPE:
                    yield make_node("Constant", [], [name], value=numpy_helper.from_array(value))


class InnerScope(_Inside):
    """A graph inside one of the nodes that replace another."""

    def __init__(self, around: BodyScope, graph: GraphProto, types: list[ValueInfoProto]) -> None:
        """Open the scope of a graph, given the types that inference finds in it."""
        super().__init__(around, around.opset)
        self._known = {value.name: value.type for value in (*graph.input, *graph.value_info, *types)}

    def defines(self, name: str) -> bool:
        """Whether the type of a value is known from the graph itself."""
        return name in self._known

    def own_type(self, name: str) -> TypeProto | None:
        """The type of a value as the graph or inference states it."""
        return self._known[name]


def _is_constant(node: NodeProto) -> bool:
    return node.op_type == "Constant" and len(node.attribute) > 0
