"""A graph or function body of the model as the resolver sees it, with the names of the model.

What it was before the run is told by the source (`types.graphs`), which nothing changes; here is what was added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Self

from onnx import FunctionProto, GraphProto, NodeProto, TensorProto

from reducelower.model.attributes import refuse_reference
from reducelower.model.nodelist import NodeList
from reducelower.model.skeleton import LARGEST_KEPT
from reducelower.model.value_info import StatedType
from reducelower.scope.ground import Ground
from reducelower.scope.values import read_tensor
from reducelower.types.fold import LARGEST
from reducelower.types.known import Constant, Known

if TYPE_CHECKING:
    from reducelower.model.numbers import Array
    from reducelower.types import Graph, GraphKey, Held, Source
    from reducelower.types.graphs import InnerGraph

__all__ = ["GraphView"]


class GraphView:
    """A graph or function body: where its values are defined, and what is known of them.

    Names resolve as in ONNX: a subgraph sees the values of enclosing graphs unless it defines the name itself; a
    function sees nothing from outside.

    Attributes:
        adopted: tensors that were made the values of names since.
    """

    def __init__(
        self, ground: Ground, holder: GraphProto | FunctionProto, opset: int, parent: Self | None, *, key: GraphKey
    ) -> None:
        """Take a graph or function body.

        Args:
            ground: shared by all graphs of the run.
            holder: the graph or function, which is edited.
            opset: opset version its nodes are written for.
            parent: the graph that encloses a subgraph.
            key: the key of this graph, which it has in every pass over it.
        """
        self.ground = ground
        self.holder = holder
        self.node_list = NodeList(holder)
        self.opset = opset
        self.parent = parent
        self.place = key
        self.adopted: dict[str, TensorProto] = {}

    @cached_property
    def before(self) -> InnerGraph:
        """This graph before any rewrite."""
        return self.ground.source.graphs.graph(self.place)

    @property
    def inputs(self) -> Mapping[str, int]:
        """The inputs of the graph or function, with their positions."""
        return self.before.inputs

    def home(self, name: str) -> Self:
        """The graph that defines a value: this one or an enclosing one."""
        graph = self
        while graph.parent is not None and name not in graph.adopted and not graph.before.defines(name):
            graph = graph.parent
        return graph

    def producer(self, name: str) -> NodeProto | None:
        """The node of this graph that computes a value, before any rewrite."""
        return self.before.producer(name)

    # Constants

    def tensor(self, name: str) -> TensorProto | None:
        """What an initializer or Constant node of this graph holds; None if there is none of that name."""
        found = self.adopted.get(name)
        return self.before.tensor(name) if found is None else found

    def has_initializer(self, name: str) -> bool:
        """Whether an initializer, or a tensor that was adopted, has that name."""
        return name in self.adopted or self.before.initializer(name) is not None

    def holds(self, name: str) -> bool:
        """Whether an initializer or Constant node of this graph has a value."""
        return self.has_initializer(name) or self.before.constant_node(name) is not None

    def is_overridable(self, name: str) -> bool:
        """Whether an initializer is only the default of a graph input, which callers may override."""
        return self.place == () and self.ground.overridable and name in self.inputs

    def stated_number(self, name: str) -> int:
        """The number of the value of an initializer or Constant node (see `Values`); 0 for anything else.

        Raises:
            RefusedError: it cannot be read.
        """
        ground = self.ground
        tensor = self.adopted.get(name) or self.before.initializer(name)
        if tensor is None:
            node = self.before.constant_node(name)
            return 0 if node is None else self._number_of_node(node)
        if self.is_overridable(name):
            if not ground.freeze_defaults:
                return 0
            ground.frozen.add(name)
        dims = tuple(tensor.dims[:])  # slicing to a list halves the time
        size = prod(dims)
        if size > LARGEST:
            return 0
        if size > LARGEST_KEPT and self.place == ():
            tensor = ground.weight(name) or tensor
        if tensor.data_location == TensorProto.EXTERNAL:
            folder = ground.data_folder
            return 0 if folder is None else ground.values.number(read_tensor(tensor, folder))
        return ground.values.number_of_tensor(tensor, dims)

    def _number_of_node(self, node: NodeProto) -> int:
        """The number of a Constant node's value."""
        if not node.attribute:
            return 0
        attribute = node.attribute[0]
        refuse_reference(attribute)
        dims = {"value": attribute.t.dims, "sparse_value": attribute.sparse_tensor.dims}.get(attribute.name, ())
        is_small = prod(dims) <= LARGEST
        return self.ground.values.number_of_attribute(attribute, self.ground.data_folder) if is_small else 0

    # For the resolver, and through it

    def held(self, name: str) -> Held | None:
        """What is known about a constant of this graph; None for any other value."""
        adopted = self.adopted.get(name)
        return self.before.held(name) if adopted is None else Constant(adopted.data_type, tuple(adopted.dims))

    def value(self, name: str) -> Array | None:
        """The value of an initializer or Constant node of this graph; None for anything else."""
        return self.ground.values[self.stated_number(name)]

    def stated_type(self, name: str) -> StatedType:
        """What this graph stated of a value or the user declared."""
        return self.before.stated_type(name)

    def handed(self, name: str) -> Sequence[Source]:
        """The values outside that become an input of this subgraph or function."""
        return self.before.handed(name)

    def readers(self, name: str) -> Sequence[NodeProto]:
        """The nodes of this graph that read a value, before any rewrite."""
        return self.before.readers(name)

    def version(self, domain: str) -> int | None:
        """The version of a domain's operators; None if it is not known."""
        return self.before.version(domain) if domain else self.opset

    def note_trusted(self, name: str) -> None:
        """Note that what this graph states for a value was used; for an input there is nothing else."""
        self.ground.trusts_sizes = self.ground.trusts_sizes or name not in self.inputs

    def inside(self, node: NodeProto) -> Sequence[tuple[Graph, Sequence[str]]]:
        """The subgraphs of a node, or the function it calls, each with the names of its outputs."""
        return self.before.inside(node)

    def known(self, name: str) -> Known:
        """What is known about a value from the nodes that compute it, with sizes as names."""
        return self.ground.resolver.known(name, self)
