"""The scope of nodes that replace one node, or of nodes in a subgraph of such replacements."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from onnx import GraphProto, NodeProto, OperatorSetIdProto, TensorProto, TypeProto

from reducelower.model.graph import read_from_outside
from reducelower.scope.node import NodeScope
from reducelower.scope.scope import Asking, Scope
from reducelower.types import Known, Resolver
from reducelower.types.graphs import Graph
from reducelower.types.known import LONGEST, Shape
from reducelower.types.sizes import numbers_of

if TYPE_CHECKING:
    from reducelower.model.numbers import Array

__all__ = ["AnyScope", "BodyScope"]

AnyScope: TypeAlias = "NodeScope | BodyScope"
"""The scope of a node to legalize: a node of the model, or one that replaces a node of the model."""


_OF_PLACES = ("is_read", "is_yielded")
"""The questions that only the enclosing scope answers: where else a value is used."""


class BodyScope(Scope):
    """The scope of the nodes that replace one node, nested in the scope of that node.

    It answers questions about the values that these nodes compute, and passes all others to the enclosing scope.
    Constants that the nodes need are added to the enclosing graph.
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

        If the nodes are in a subgraph, `inside` is the node of scope `around` that holds it, and the subgraph.
        """
        self.parent = around
        self.opset = opset
        self.target_opset = around.target_opset
        self._inside = inside
        # A copy, since legalization edits the nodes in place.
        stated = GraphProto() if inside is None else inside[1]
        self._graph = GraphProto(node=nodes, input=stated.input, value_info=stated.value_info)

    @property
    def node_scope(self) -> NodeScope:
        """See `Scope.node_scope`."""
        return self.parent.node_scope

    def defines(self, name: str) -> bool:
        """Whether a value is defined in this scope."""
        return self._types[1].defines(name)

    # Questions

    def ask(self, question: Asking, name: str) -> Any:
        """See `Scope.ask`; the enclosing scope may know more about outputs of the replaced node."""
        if question == "is_read" and any(name in read_from_outside(node) for node in self._graph.node):
            return True
        if self.defines(name) and question not in _OF_PLACES:
            answer = self._answer(question, name)
            if answer is None and question == "type" and self.node_scope.is_new(name):  # no other scope knows more
                answer = self._types[0].type(name, self._types[1], may_lack_rank=True)
            if answer is not None or question == "constant":
                return answer
        return self.parent.ask(question, name)

    def _answer(self, question: Asking, name: str) -> Any:
        """The answer about a value that the nodes compute."""
        resolver, nodes = self._types
        match question:
            case "constant" | "element_type" | "rank":
                return resolver.ask(nodes, question, name)
            case "shape":
                shape = resolver.ask(nodes, question, name)
                return None if shape is None else numbers_of(shape)
            case "type":
                return resolver.type(name, nodes)
            case "made_by":
                node = nodes.producer(name)
                return "" if node is None else node.op_type
            case "written_as":
                return "dynamic" if nodes.constant_node(name) is None else "constant"
        raise AssertionError(question)

    @cached_property
    def _types(self) -> tuple[Resolver, Graph]:
        """Resolves types; it asks the enclosing scope one question at a time."""
        return Resolver(), self._view(with_names=False)

    @cached_property
    def _sizes(self) -> tuple[Resolver, Graph]:
        """Resolves symbolic sizes, from all that the enclosing scope knows."""
        return Resolver(self.node_scope.atoms), self._view(with_names=True)

    def _view(self, *, with_names: bool) -> Graph:
        """The nodes as the resolver sees them, with symbolic sizes or without."""
        if self._inside is None or not isinstance(self.parent, BodyScope):
            return Graph(self._graph, _Around(self.parent, self.opset, with_names=with_names))
        return Graph(self._graph, self.parent._view(with_names=with_names), self._inside[0])

    def known(self, name: str) -> Known:
        """See `Scope.known`; facts about values of these nodes follow from facts about outer values."""
        resolver, nodes = self._sizes
        return resolver.known(name, nodes) if self.defines(name) else self.parent.known(name)

    def type_inside(self, node: NodeProto, number: int, name: str) -> TypeProto | None:
        """The type of a value in a subgraph of one of the nodes."""
        resolver, nodes = self._types
        return resolver.type(name, nodes.inside(node)[number])

    # Everything else

    def how_to_declare(self, name: str, what: Literal["type", "rank"]) -> str:
        """The hint how to declare a value of the model; types of new values follow from those that the nodes read."""
        if not self.defines(name):
            return self.parent.how_to_declare(name, what)
        read = {name for node in self._graph.node for name in read_from_outside(node)}
        for outer in sorted(read):
            if self.defines(outer):
                continue
            known = self.parent.element_type(outer) if what == "type" else self.parent.rank(outer)
            if known is None:
                return self.parent.how_to_declare(outer, what)
        return "state the types and shapes of what the node reads"


class _Around(Graph):
    """The surroundings of a body, as the resolver sees them: the outer values that its nodes read."""

    def __init__(self, scope: Scope, opset: int, *, with_names: bool) -> None:
        super().__init__(GraphProto(), None, imports=[OperatorSetIdProto(version=opset)])
        # Not the scope of the body itself: that reference cycle would keep the weights until garbage collection.
        self._scope = scope
        self._with_names = with_names

    def held(self, name: str) -> object:
        return (_OutsideWithNames if self._with_names else _Outside)(self._scope, name)


class _Outside:
    """An outer value that the nodes of a body read, by question. It asks for each fact when it is needed."""

    def __init__(self, scope: Scope, name: str) -> None:
        self._scope = scope
        self._name = name

    @property
    def element_type(self) -> int | None:
        return self._scope.element_type(self._name)

    @property
    def container(self) -> bytes | None:
        value_type = self._scope.type(self._name)
        is_tensor = value_type is None or value_type.HasField("tensor_type")
        return None if value_type is None or is_tensor else value_type.SerializeToString()

    @property
    def rank(self) -> int | None:
        return self._scope.rank(self._name)

    @property
    def shape(self) -> Shape | None:
        sizes, rank = self._scope.shape(self._name), None
        if sizes is None and (rank := self.rank) is None:
            return None
        return sizes or (None,) * (rank or 0)

    @property
    def constant(self) -> Array | None:
        return self._scope.constant(self._name)

    @property
    def contents(self) -> Array | None:
        """Its value if it may be a shape or axes. It asks for no others, since weights differ from node to node."""
        value = self.constant if self.element_type in (TensorProto.INT32, TensorProto.INT64) else None
        return value if value is not None and value.size <= LONGEST else None


class _OutsideWithNames(_Outside):
    """The same, with symbolic sizes."""

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    @property
    def shape(self) -> Shape | None:
        return self._scope.known(self._name).shape

    @property
    def contents(self) -> Array | None:
        return self._scope.known(self._name).contents
