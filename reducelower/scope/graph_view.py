"""A graph or function body of the model as folding and the resolver see it, with the names of the model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Self

from onnx import FunctionProto, GraphProto, NodeProto

from reducelower.errors import RefusedError
from reducelower.model.inference.declared import declared_type
from reducelower.model.nodelist import NodeList
from reducelower.model.value_info import StatedType, stated_type
from reducelower.scope.graph_constants import GraphConstants
from reducelower.scope.ground import Ground
from reducelower.scope.stated import StatedTypes
from reducelower.types.known import Constant, Known

if TYPE_CHECKING:
    from reducelower.model.numbers import Array
    from reducelower.types import Graph, GraphKey, Held, Source

__all__ = ["GraphView"]


class GraphView:
    """A graph or function body: where its values are defined, and what is known of them.

    Names resolve as in ONNX: a subgraph sees the values of enclosing graphs unless it defines the name itself; a
    function sees nothing from outside.
    """

    def __init__(
        self,
        ground: Ground,
        holder: GraphProto | FunctionProto,
        opset: int,
        parent: Self | None = None,
        *,
        key: GraphKey,
        nodes: NodeList | None = None,
    ) -> None:
        """Take a graph or function body.

        Args:
            ground: shared by all graphs of the run.
            holder: the graph or function.
            opset: opset version its nodes are written for.
            parent: the graph that encloses a subgraph.
            key: the key of this graph, which it has in every pass over it.
            nodes: its nodes, if `holder` does not hold them.
        """
        self.ground = ground
        self.holder = holder
        self.node_list = NodeList.of_holder(holder) if nodes is None else nodes
        self.opset = opset
        self.parent = parent
        self.place = key
        self.constants = GraphConstants(ground, holder, self.node_list, is_main=key == ())
        self.inputs = self.constants.inputs
        self.stated = StatedTypes(holder, ground.stated if key == () else None)

    def home(self, name: str) -> Self:
        """The graph that defines a value: this one or an enclosing one."""
        graph = self
        while graph.parent is not None and name not in graph.defined:
            graph = graph.parent
        return graph

    @cached_property
    def defined(self) -> set[str]:
        """The values that this graph defines, if it is a subgraph."""
        holder = self.holder
        if self.parent is None:
            return set()  # every name that no subgraph defines belongs here
        defined = {*self.constants.places, *self.inputs}
        if isinstance(holder, GraphProto):
            defined.update(tensor.values.name for tensor in holder.sparse_initializer)
        for node in self.node_list:
            defined.update(node.output)
        return defined

    def producer(self, name: str) -> NodeProto | None:
        """The node of this graph that computes a value, before any rewrite."""
        return self.node_list.producer(name)

    def whole(self, name: str) -> Array | None:
        """The value of an initializer or Constant node of this graph; None for anything else."""
        return self.constants.value(name)

    # For the resolver, and through it

    @property
    def before(self) -> Graph:
        """This graph before any rewrite."""
        return self.ground.source.graphs.graph(self.place)

    def held(self, name: str) -> Held | None:
        """What is known about a constant of this graph; None for any other value."""
        tensor = self.constants.tensor(name)
        if tensor is None or (self.constants.is_overridable(name) and not self.ground.freeze_defaults):
            return None
        return Constant(tensor.data_type, tuple(tensor.dims))

    def value(self, name: str) -> Array | None:
        """The value of a constant of this graph; None for any other value, and one that cannot be read."""
        try:
            return self.whole(name)
        except RefusedError:  # what needs it is refused
            return None

    def stated_type(self, name: str) -> StatedType:
        """What this graph states of a value or the user declared."""
        ground = self.ground
        return stated_type(declared_type(name, self.stated.type(name), ground.element_types, ground.ranks))

    def handed(self, name: str) -> Sequence[Source]:
        """The values outside that become an input of this subgraph or function."""
        return self.before.handed(name)

    def readers(self, name: str) -> Sequence[NodeProto]:
        """The nodes of this graph that read a value, before any rewrite."""
        return self.before.readers(name)

    def version(self, domain: str) -> int | None:
        """The version of a domain's operators; None if it is not known."""
        if not domain:
            return self.opset
        return self.before.version(domain)

    def note_trusted(self, name: str) -> None:
        """Note that what this graph states for a value was used; for an input there is nothing else."""
        self.ground.trusts_sizes = self.ground.trusts_sizes or name not in self.inputs

    def inside(self, node: NodeProto) -> Sequence[tuple[Graph, Sequence[str]]]:
        """The subgraphs of a node, or the function it calls, each with the names of its outputs."""
        return self.before.inside(node)

    def known(self, name: str) -> Known:
        """What is known about a value from the nodes that compute it, with sizes as names."""
        return self.ground.resolver.known(name, self)

    def counted(self, name: str) -> Array | None:
        """The value of a small vector of sizes, if all of them are known numbers."""
        return self.ground.resolver.counted(name, self)
