"""Scopes of the nodes that replace one node, and of the subgraphs of such nodes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
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

from reducelower.model.attributes import make_node
from reducelower.model.element_types import ElementTypeOrInputs, output_element_type, resolve_element_type
from reducelower.model.graph import read_from_outside, subgraphs
from reducelower.model.inference import infer_body
from reducelower.model.schemas import element_type_name, type_string
from reducelower.model.value_info import sizes, without_made_up_symbols
from reducelower.scope.fold import Folding
from reducelower.scope.graph import LARGEST_SHAPE, as_vector
from reducelower.scope.node import NodeScope
from reducelower.scope.ranks import KnownRanks, Ranks
from reducelower.scope.scope import Scope
from reducelower.types import Known, Resolver

if TYPE_CHECKING:
    from reducelower.model.numbers import Array

__all__ = ["AnyScope", "BodyScope", "InnerScope"]

AnyScope: TypeAlias = "NodeScope | BodyScope | InnerScope"
"""The scope of a node to legalize: a node of the model, or one that replaces a node of the model."""


class _NestedScope(Scope):
    """A scope nested in another: it answers for the values that it defines, and passes every other question outward."""

    is_made = True
    parent: Scope
    node_scope: NodeScope
    """The scope of the model's node that is being replaced."""

    def __init__(self, parent: NodeScope | _NestedScope, opset: int) -> None:
        self.parent = parent
        self.node_scope = parent if isinstance(parent, NodeScope) else parent.node_scope
        self.opset = opset
        self.target_opset = parent.target_opset
        self.is_last_attempt = parent.is_last_attempt

    @abstractmethod
    def defines(self, name: str) -> bool:
        """Whether a value is defined in this scope."""

    @abstractmethod
    def own_type(self, name: str) -> TypeProto | None:
        """The type of a value that is defined here; None if unknown."""

    # Types

    def type(self, name: str) -> TypeProto | None:
        """The type of a value."""
        # The last nodes compute the outputs of the replaced node, whose types the enclosing graph knows.
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

    # Everything else

    def constant(self, name: str) -> Array | None:
        """The value of a constant."""
        return self.parent.constant(name)

    def reference(self, name: str) -> AttributeProto | None:
        """See `Scope.reference`."""
        return self.parent.reference(name)

    def known(self, name: str) -> Known:
        """See `Scope.known`."""
        return Known() if self.defines(name) else self.parent.known(name)

    def heeds_zero(self) -> bool:
        """See `Scope.heeds_zero`."""
        return self.node_scope.heeds_zero()

    def never_zero(self) -> Collection[int]:
        """See `Scope.never_zero`."""
        return self.parent.never_zero()

    def written_as(self, name: str) -> str:
        """See `Scope.written_as`."""
        return "dynamic" if self.defines(name) else self.parent.written_as(name)

    def made_by(self, name: str) -> str:
        """The operator that computes a value."""
        return "" if self.defines(name) else self.parent.made_by(name)

    def is_read(self, name: str) -> bool:
        """Whether anything reads a value."""
        return self.parent.is_read(name)

    def is_yielded(self, name: str) -> bool:
        """Whether a value is an output of the model."""
        return self.parent.is_yielded(name)

    def is_function_input(self, name: str) -> bool:
        """Whether a value is an input of the enclosing function."""
        return self.parent.is_function_input(name)

    def type_inside(self, node: NodeProto, number: int, name: str) -> TypeProto | None:
        """The inferred type of a value in a subgraph of a node."""
        return self.parent.type_inside(node, number, name)

    def fresh(self, stem: str, tail: str) -> str:
        """A name for a new value."""
        return self.node_scope.fresh(stem, tail)

    def add_constant(self, value: Array, tail: str) -> str:
        """Add the constant to the enclosing graph."""
        return self.node_scope.add_constant(value, tail)

    def add_reference(self, attribute: AttributeProto, value: str, tail: str) -> str:
        """Add the Constant node to the enclosing function."""
        return self.node_scope.add_reference(attribute, value, tail)

    def replace_by_initializer(self, name: str, tensor: TensorProto) -> None:
        """See `Scope.replace_by_initializer`."""
        self.node_scope.replace_by_initializer(name, tensor)

    def declare(self, name: str, element_type: int) -> None:
        """State the element type of a new value."""
        self.node_scope.declare(name, element_type)

    def state_type(self, name: str) -> None:
        """Let the enclosing graph state the type of a value."""
        self.node_scope.state_type(name)

    def release(self, *names: str) -> None:
        """Record that the node no longer reads these constants of the enclosing graph."""
        self.parent.release(*(name for name in names if not self.defines(name)))


class BodyScope(_NestedScope):
    """The scope of the nodes that replace one node, nested in the scope of that node.

    Constants that they need go to the enclosing graph. The types of what they compute are inferred over these nodes
    alone.
    """

    def __init__(self, around: NodeScope | _NestedScope, nodes: list[NodeProto], opset: int) -> None:
        """Open the scope of replacement nodes that are written for an opset version."""
        super().__init__(around, opset)
        # A copy, since legalization edits the nodes in place.
        self.nodes = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
        self._producers = {name: node for node in self.nodes for name in node.output if name}
        self._constants: dict[str, Array | None] = {}
        self._folding = Folding()
        self._found_element_types: dict[str, int] = {}
        self._ranks: dict[str, int | None] = {}
        self.known_ranks: KnownRanks = {}

    def defines(self, name: str) -> bool:
        """Whether one of the nodes computes a value."""
        return name in self._producers

    # Constants among the nodes

    def constant(self, name: str) -> Array | None:
        """The value of a constant, which may be folded from these nodes."""
        if not self.defines(name):
            return self.parent.constant(name)
        if name not in self._constants:
            self._constants[name] = self._folding.value(name, self)
        return self._constants[name]

    def home(self, name: str) -> BodyScope:
        """This scope: it answers for outer values too, which are either constants or not foldable."""
        return self

    def whole(self, name: str) -> Array | None:
        """The value of a Constant node here, or of any outer constant; None if the nodes compute it."""
        node = self.producer(name)
        if node is None:
            return self.parent.constant(name)
        values = self.node_scope.graph.ground.values
        return values[values.number_of_attribute(node.attribute[0])] if _is_constant(node) else None

    def producer(self, name: str) -> NodeProto | None:
        """The node that computes a value."""
        return self._producers.get(name)

    def reference(self, name: str) -> AttributeProto | None:
        """See `Scope.reference`."""
        node = self.producer(name)
        if node is None:
            return self.parent.reference(name)
        return next((each for each in node.attribute if each.ref_attr_name), None) if _is_constant(node) else None

    def written_as(self, name: str) -> str:
        """See `Scope.written_as`."""
        node = self.producer(name)
        if node is None:
            return self.parent.written_as(name)
        return "constant" if _is_constant(node) else "dynamic"

    def made_by(self, name: str) -> str:
        """The operator that computes a value."""
        node = self.producer(name)
        return self.parent.made_by(name) if node is None else node.op_type

    def is_read(self, name: str) -> bool:
        """Whether one of the nodes, or anything outside, reads a value."""
        return any(name in read_from_outside(node) for node in self.nodes) or self.parent.is_read(name)

    def is_yielded(self, name: str) -> bool:
        """Whether a value is an output of the model."""
        return self.parent.is_yielded(name)

    def is_function_input(self, name: str) -> bool:
        """Whether a value is an input of the enclosing function."""
        return not self.defines(name) and self.parent.is_function_input(name)

    # Ranks

    def rank(self, name: str) -> int | None:
        """The number of dimensions of a tensor."""
        if self.defines(name) and name not in self._ranks:
            self.known_ranks = {}  # cleared each time, so that the memo records every question to the enclosing scope
            self._ranks[name] = Ranks().rank(name, self)
        found = self._ranks.get(name)
        return super().rank(name) if found is None else found

    def declared_rank(self, name: str) -> int | None:
        """The rank of a value that the user declared or the enclosing scope knows."""
        return self.node_scope.declared_rank(name) if self.defines(name) else self.parent.rank(name)

    def stated_rank(self, name: str) -> int | None:
        """None: replacement nodes state no types."""

    def given_shape(self, name: str) -> tuple[int | None, ...] | None:
        """The shape of a constant among the nodes, or of an outer value."""
        if not self.defines(name):
            return self.parent.shape(name)
        value = self.whole(name)
        return None if value is None else value.shape

    def given_vector(self, name: str) -> list[int] | None:
        """The value of a constant integer vector."""
        return as_vector(self.whole(name))

    # Sizes

    def known(self, name: str) -> Known:
        """See `Scope.known`; what the nodes compute is followed from what is known about outer values."""
        return self._resolver.known(name, self) if self.defines(name) else self.parent.known(name)

    @cached_property
    def _resolver(self) -> Resolver:
        return Resolver(self.node_scope.atoms)

    def held(self, name: str) -> Known | None:
        """What is known about a value from outside."""
        return None if self.defines(name) else self.parent.known(name)

    def stated_type(self, name: str) -> TypeProto | None:
        """None: replacement nodes state no types."""

    def note_trusted(self, name: str) -> None:
        """Nothing is stated."""

    def inside(self, node: NodeProto) -> list[tuple[BodyScope, list[str]]]:
        """Nothing: the subgraphs of replacement nodes are not followed."""
        return []

    # Types

    def type_string(self, name: str) -> str | None:
        """The type of a value as schemas spell it."""
        answer = (
            resolve_element_type(name, self._element_type_or_inputs, self._found_element_types)
            if self.defines(name)
            else 0
        )
        return f"tensor({element_type_name(answer)})" if answer else super().type_string(name)

    def element_type(self, name: str) -> int | None:
        """The element type of a tensor."""
        return (
            resolve_element_type(name, self._element_type_or_inputs, self._found_element_types)
            if self.defines(name)
            else 0
        ) or super().element_type(name)

    def _element_type_or_inputs(self, name: str) -> ElementTypeOrInputs:
        """What the nodes say about an element type without shape inference; see `resolve_element_type`."""
        declared = self.node_scope.declared_element_type(name)
        if declared is not None:
            return declared
        node = self.producer(name)
        return self.parent.element_type(name) or 0 if node is None else output_element_type(node, name, self.opset)

    def own_type(self, name: str) -> TypeProto | None:
        """The type by inference over the nodes."""
        return self._types.get(name)

    def state_type(self, name: str) -> None:
        """Let the enclosing graph state the type of a value, which the nodes may define."""
        if not self.node_scope.is_new(name):
            self.parent.state_type(name)
        elif (found := self.type(name)) is not None:
            self.node_scope.types[name] = without_made_up_symbols(found)

    def types_inside(self, node: NodeProto, number: int) -> list[ValueInfoProto]:
        """The types of the inputs and values of a node's subgraph, given by its number among the node's subgraphs."""
        graph = self._graph_inside(node, number)
        # An input may lack a type; then value_info has it.
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
        """The type of an outer value, with the rank that the user declared, if any."""
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
        """The hint how to declare a value of the model; types of new values follow from those that the nodes read."""
        if not self.defines(name):
            return self.parent.how_to_declare(name, what)
        for outer in self._read_outside():
            known = self.parent.element_type(outer) if what == "type" else self.parent.rank(outer)
            if known is None:
                return self.parent.how_to_declare(outer, what)
        return "state the types and shapes of what the node reads"

    def _read_outside(self) -> list[str]:
        """The outer values that the nodes and their subgraphs read."""
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
        """Constant nodes for the outer integers that inference may read as shapes or axes."""
        for name, found in known.items():
            if found.tensor_type.elem_type in (TensorProto.INT32, TensorProto.INT64):
                value = self.parent.constant(name)
                if value is not None and value.size <= LARGEST_SHAPE:
                    yield make_node("Constant", [], [name], value=numpy_helper.from_array(value))


class InnerScope(_NestedScope):
    """The scope of a subgraph of a replacement node."""

    def __init__(self, around: BodyScope, graph: GraphProto, types: list[ValueInfoProto]) -> None:
        """Open the scope of a graph, with the types that inference found in it."""
        super().__init__(around, around.opset)
        self._known = {value.name: value.type for value in (*graph.input, *graph.value_info, *types)}

    def defines(self, name: str) -> bool:
        """Whether the graph determines the type of a value."""
        return name in self._known

    def own_type(self, name: str) -> TypeProto | None:
        """The stated or inferred type of a value."""
        return self._known[name]


def _is_constant(node: NodeProto) -> bool:
    return node.op_type == "Constant" and len(node.attribute) > 0
