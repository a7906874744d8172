"""The scope of nodes that replace one node, or of nodes in a subgraph of such replacements."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from onnx import GraphProto, NodeProto, OperatorSetIdProto, TypeProto

from reducelower.model.graph import read_from_outside
from reducelower.scope.node import NodeScope
from reducelower.scope.scope import Asking, Scope
from reducelower.types import Known, Resolver
from reducelower.types.graphs import Graph
from reducelower.types.sizes import numbers_of

if TYPE_CHECKING:
    pass

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
        return self._nodes.defines(name)

    # Questions

    def ask(self, question: Asking, name: str) -> Any:
        """See `Scope.ask`; the enclosing scope may know more about outputs of the replaced node."""
        if question == "is_read" and any(name in read_from_outside(node) for node in self._graph.node):
            return True
        if self.defines(name) and question not in _OF_PLACES:
            answer = self._answer(question, name)
            if answer is not None or question == "constant":
                return answer
        return self.parent.ask(question, name)

    def _answer(self, question: Asking, name: str) -> Any:
        """The answer about a value that the nodes compute."""
        nodes = self._nodes
        match question:
            case "constant" | "container" | "element_type" | "rank":
                return self._resolver.ask(nodes, question, name)
            case "shape":
                shape = self._resolver.ask(nodes, question, name)
                return None if shape is None else numbers_of(shape)
            case "made_by":
                node = nodes.producer(name)
                return "" if node is None else node.op_type
            case "written_as":
                return "dynamic" if nodes.constant_node(name) is None else "constant"
        raise AssertionError(question)

    @cached_property
    def _resolver(self) -> Resolver:
        """Resolves facts about values of the nodes; it asks the enclosing scope one question at a time."""
        node_scope = self.node_scope
        return Resolver(lambda: node_scope.atoms)

    @cached_property
    def _nodes(self) -> Graph:
        """The nodes as the resolver sees them."""
        if self._inside is None or not isinstance(self.parent, BodyScope):
            return Graph(self._graph, _Around(self.parent, self.opset))
        return Graph(self._graph, self.parent._nodes, self._inside[0])

    def known(self, name: str) -> Known:
        """See `Scope.known`; facts about values of these nodes follow from facts about outer values."""
        return self._resolver.known(name, self._nodes) if self.defines(name) else self.parent.known(name)

    def type_inside(self, node: NodeProto, number: int, name: str) -> TypeProto | None:
        """The type of a value in a subgraph of one of the nodes."""
        return self._resolver.type(name, self._nodes.inside(node)[number])

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

    def __init__(self, scope: Scope, opset: int) -> None:
        super().__init__(GraphProto(), None, imports=[OperatorSetIdProto(version=opset)])
        # Not the scope of the body itself: that reference cycle would keep the weights until garbage collection.
        self._scope = scope

    def held(self, name: str) -> object:
        return _Outside(self._scope, name)


class _Outside:
    """An outer value that the nodes of a body read, by question. It asks for each fact when it is needed."""

    def __init__(self, scope: Scope, name: str) -> None:
        self._scope = scope
        self._name = name

    def __getattr__(self, question: str) -> Any:
        """The answer to a question of the resolver."""
        if question in ("shape", "contents"):  # with names for sizes
            return getattr(self._scope.known(self._name), question)
        return getattr(self._scope, question)(self._name)
