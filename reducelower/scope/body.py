"""The scope of nodes that replace one node, or stand in a subgraph of such nodes."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from onnx import GraphProto, NodeProto, TensorProto, TypeProto, helper

from reducelower.model.graph import read_from_outside, subgraphs
from reducelower.model.inference.declared import declared_type
from reducelower.model.schemas import element_type_name, type_string
from reducelower.scope.fold import Folding
from reducelower.scope.node import NodeScope
from reducelower.scope.scope import Scope
from reducelower.types import Known, Resolver, Size
from reducelower.types.graphs import InnerGraph, inner_graphs, sources_outside
from reducelower.types.known import LONGEST

if TYPE_CHECKING:
    from reducelower.model.numbers import Array
    from reducelower.types import Graph, Held, Source
    from reducelower.types.known import Question

__all__ = ["AnyScope", "BodyScope"]

AnyScope: TypeAlias = "NodeScope | BodyScope"
"""The scope of a node to legalize: a node of the model, or one that replaces a node of the model."""


class BodyScope(Scope):
    """The scope of the nodes that replace one node, nested in the scope of that node.

    It answers for the values that these nodes compute, and passes every other question outward. Constants that they
    need go to the enclosing graph.

    Attributes:
        node_scope: the scope of the model's node that is being replaced.
    """

    is_made = True

    def __init__(
        self,
        around: AnyScope,
        nodes: Iterable[NodeProto],
        opset: int,
        inside: tuple[NodeProto, GraphProto] | None = None,
    ) -> None:
        """Open the scope of replacement nodes that are written for an opset version.

        `inside` is a node of the scope around and the subgraph of it that holds the nodes, if they stand in one.
        """
        self.parent = around
        self.node_scope: NodeScope = around if isinstance(around, NodeScope) else around.node_scope
        self.opset = opset
        self.target_opset = around.target_opset
        # A copy, since legalization edits the nodes in place.
        self.nodes = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
        self.inside = inside
        graph = GraphProto() if inside is None else inside[1]
        self.stated = {value.name: value.type for value in (*graph.value_info, *graph.input)}
        self.producers = {name: node for node in self.nodes for name in node.output if name}
        self._constants: dict[str, Array | None] = {}
        self._folding = Folding()

    def defines(self, name: str) -> bool:
        """Whether a value is defined in this scope."""
        return name in self.producers or name in self.stated

    # Types

    @cached_property
    def _types(self) -> tuple[Resolver, _Nodes]:
        """Follows types; what is known outside is asked one question at a time."""
        return Resolver(), _Nodes(self)

    @cached_property
    def _sizes(self) -> tuple[Resolver, _Nodes]:
        """Follows sizes by their names, from all that is known outside."""
        return Resolver(self.node_scope.atoms), _NamedSizes(self)

    def type(self, name: str) -> TypeProto | None:
        """The type of a value."""
        resolver, nodes = self._types
        found = resolver.type(name, nodes) if self.defines(name) else None
        if found is None and self.node_scope.is_new(name) and (element_type := self.element_type(name)):
            found = TypeProto(tensor_type=TypeProto.Tensor(elem_type=element_type))
        # The last nodes compute the outputs of the replaced node, whose types the enclosing graph knows.
        return found or self.parent.type(name)

    def type_string(self, name: str) -> str | None:
        """The type of a value as schemas spell it."""
        found = self.element_type(name) if self.defines(name) or self.node_scope.declared_element_type(name) else None
        if found is not None:
            return f"tensor({element_type_name(found)})"
        resolver, nodes = self._types
        container = resolver.type(name, nodes) if self.defines(name) else None
        return self.parent.type_string(name) if container is None else type_string(container)

    def element_type(self, name: str) -> int | None:
        """The element type of a tensor."""
        declared = self.node_scope.declared_element_type(name)
        if declared is not None:
            return declared
        resolver, nodes = self._types
        found = resolver.element_type(name, nodes) if self.defines(name) else 0
        return found or self.parent.element_type(name)

    def shape(self, name: str) -> tuple[int | None, ...] | None:
        """The shape of a tensor."""
        resolver, nodes = self._types
        found = resolver.shape(name, nodes) if self.defines(name) else None
        return self.parent.shape(name) if found is None else tuple(size.number for size in found)

    def rank(self, name: str) -> int | None:
        """The number of dimensions of a tensor."""
        declared = self.node_scope.declared_rank(name)
        if declared is not None:
            return declared
        resolver, nodes = self._types
        found = resolver.rank(name, nodes) if self.defines(name) else None
        return self.parent.rank(name) if found is None else found

    def known(self, name: str) -> Known:
        """See `Scope.known`; what the nodes compute is followed from what is known about outer values."""
        resolver, nodes = self._sizes
        return resolver.known(name, nodes) if self.defines(name) else self.parent.known(name)

    def type_inside(self, node: NodeProto, number: int, name: str) -> TypeProto | None:
        """The type of a value in a subgraph of one of the nodes."""
        resolver, nodes = self._types
        graph = next(graph for at, _, graph in subgraphs(node) if at == number)
        inner = InnerGraph(graph, nodes, node)
        return resolver.type(name, inner)

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
            return None if name in self.stated else self.parent.constant(name)
        return self.node_scope.value_of(node)

    def producer(self, name: str) -> NodeProto | None:
        """The node that computes a value."""
        return self.producers.get(name)

    def counted(self, name: str) -> Array | None:
        """The value of a small vector of sizes that these nodes compute, if all of them are known numbers."""
        resolver, nodes = self._types
        return resolver.known(name, nodes).counted

    # Everything else

    def heeds_zero(self) -> bool:
        """See `Scope.heeds_zero`."""
        return self.node_scope.heeds_zero()

    def never_zero(self) -> Collection[int]:
        """See `Scope.never_zero`."""
        return self.parent.never_zero()

    def written_as(self, name: str) -> str:
        """See `Scope.written_as`."""
        node = self.producer(name)
        if node is None:
            return "dynamic" if name in self.stated else self.parent.written_as(name)
        return "constant" if _is_constant(node) else "dynamic"

    def made_by(self, name: str) -> str:
        """The operator that computes a value."""
        node = self.producer(name)
        if node is None:
            return "" if name in self.stated else self.parent.made_by(name)
        return node.op_type

    def is_read(self, name: str) -> bool:
        """Whether one of the nodes, or anything outside, reads a value."""
        return any(name in read_from_outside(node) for node in self.nodes) or self.parent.is_read(name)

    def is_yielded(self, name: str) -> bool:
        """Whether a value is an output of the model."""
        return self.parent.is_yielded(name)

    def is_function_input(self, name: str) -> bool:
        """Whether a value is an input of the enclosing function."""
        return not self.defines(name) and self.parent.is_function_input(name)

    def how_to_declare(self, name: str, what: Literal["type", "rank"]) -> str:
        """The hint how to declare a value of the model; types of new values follow from those that the nodes read."""
        if not self.defines(name):
            return self.parent.how_to_declare(name, what)
        read = {name for node in self.nodes for name in read_from_outside(node)}
        for outer in sorted(read - self.producers.keys() - self.stated.keys()):
            known = self.parent.element_type(outer) if what == "type" else self.parent.rank(outer)
            if known is None:
                return self.parent.how_to_declare(outer, what)
        return "state the types and shapes of what the node reads"

    # Additions

    def fresh(self, stem: str, tail: str) -> str:
        """A name for a new value."""
        return self.node_scope.fresh(stem, tail)

    def add_constant(self, value: Array, tail: str) -> str:
        """Add the constant to the enclosing graph."""
        return self.node_scope.add_constant(value, tail)

    def replace_by_initializer(self, name: str, tensor: TensorProto) -> None:
        """See `Scope.replace_by_initializer`."""
        self.node_scope.replace_by_initializer(name, tensor)

    def declare(self, name: str, element_type: int) -> None:
        """State the element type of a new value."""
        self.node_scope.declare(name, element_type)

    def state_type(self, name: str) -> None:
        """Let the enclosing graph state the type of a value, which the nodes may define."""
        if not self.node_scope.is_new(name):
            self.parent.state_type(name)
        elif (found := self.type(name)) is not None:
            self.node_scope.types[name] = found

    def release(self, *names: str) -> None:
        """Record that the node no longer reads these constants of the enclosing graph."""
        self.parent.release(*(name for name in names if not self.defines(name)))


class _Nodes:
    """The nodes of a body as the resolver sees them."""

    def __init__(self, scope: BodyScope) -> None:
        # Not the scope itself: a reference cycle would keep the weights until the garbage collector runs.
        self._parent, self._node_scope = scope.parent, scope.node_scope
        self._producers, self._stated, self._inside = scope.producers, scope.stated, scope.inside
        self.opset = scope.opset

    @property
    def place(self) -> Hashable:
        return self

    def home(self, name: str) -> Graph:
        return self

    def producer(self, name: str) -> NodeProto | None:
        return self._producers.get(name)

    def held(self, name: str) -> Held | None:
        node = self.producer(name)
        if node is None:
            return None if name in self._stated else self.outside(self._parent, name)
        value = self._node_scope.value_of(node)
        return None if value is None else _constant(value)

    def outside(self, scope: Scope, name: str) -> Held:
        return _Outside(scope, name)

    def stated_type(self, name: str) -> TypeProto | None:
        scope, stated = self._node_scope, self._stated.get(name)
        element_type, rank = scope.declared_element_type(name), scope.declared_rank(name)
        return stated if element_type is None and rank is None else declared_type(stated, element_type, rank)

    def handed(self, name: str) -> Sequence[Source]:
        if self._inside is None or not isinstance(self._parent, BodyScope):
            return ()
        node, graph = self._inside
        place = next((at for at, value in enumerate(graph.input) if value.name == name), None)
        return () if place is None else sources_outside(node, type(self)(self._parent), place)

    def version(self, domain: str) -> int | None:
        return None if domain else self.opset

    def readers(self, name: str) -> Sequence[NodeProto]:
        """None: rules read what they know the type of."""
        return ()

    def note_trusted(self, name: str) -> None:
        """Nothing is stated that may be stale."""

    def inside(self, node: NodeProto) -> Sequence[tuple[Graph, Sequence[str]]]:
        return inner_graphs(node, self)


class _NamedSizes(_Nodes):
    """The same, with the sizes of outer values by their names."""

    def outside(self, scope: Scope, name: str) -> Held:
        return scope.known(name)


class _Outside:
    """A value that the nodes of a body read, each fact of which is asked when it is needed."""

    def __init__(self, scope: Scope, name: str) -> None:
        self._scope = scope
        self._name = name

    def answer(self, question: Question) -> Any:
        scope, name = self._scope, self._name
        match question:
            case "element_type":
                return scope.element_type(name) or 0
            case "container":
                found = scope.type(name)
                return b"" if found is None or found.HasField("tensor_type") else found.SerializeToString()
            case "rank":
                return scope.rank(name)
            case "shape":
                sizes, rank = scope.shape(name), None
                if sizes is None and (rank := scope.rank(name)) is None:
                    return None
                return tuple(None if size is None else Size.of(size) for size in sizes or (None,) * (rank or 0))
            case _:
                return self._constant.answer(question)

    @cached_property
    def _constant(self) -> Known:
        """Its value if it may be a shape or axes. Others are not asked for: weights differ from node to node."""
        if self._scope.element_type(self._name) not in (TensorProto.INT32, TensorProto.INT64):
            return Known()
        value = self._scope.constant(self._name)
        return Known() if value is None or value.size > LONGEST else _constant(value)


def _constant(value: Array) -> Known:
    return Known.of_constant(helper.np_dtype_to_tensor_dtype(value.dtype), value.shape, value)


def _is_constant(node: NodeProto) -> bool:
    return node.op_type == "Constant" and len(node.attribute) > 0
