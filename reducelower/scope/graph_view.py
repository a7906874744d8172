"""A graph or function body as the resolver sees it: the original, and the constants that a run added."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from onnx import NodeProto, TensorProto

from reducelower.model.attributes import refuse_reference
from reducelower.model.skeleton import LARGEST_CONSTANT
from reducelower.scope.ground import Ground
from reducelower.scope.values import read_tensor
from reducelower.types.known import Known
from reducelower.types.model_graphs import KeyedGraph

if TYPE_CHECKING:
    from reducelower.model.numbers import Array
    from reducelower.types import GraphKey

__all__ = ["GraphView"]


class GraphView(KeyedGraph):
    """A graph or function body of the source, which nobody edits, with the constants that a run adds.

    Attributes:
        adopted: the tensors of values that a run added or made constant, by name.
    """

    def __init__(self, ground: Ground, opset: int, key: GraphKey) -> None:
        """Take the shared state of the run, the opset version that nodes are written for, and the key."""
        super().__init__(ground.source.graphs, key)
        ground.source.graphs.put(self)
        self.ground = ground
        self.opset = opset
        self.adopted: dict[str, TensorProto] = {}

    def defines(self, name: str) -> bool:
        """Whether the graph defines a value, originally or by an added constant."""
        return name in self.adopted or super().defines(name)

    def producer(self, name: str) -> NodeProto | None:
        """The node that computed a value before any rewrite; None for one that was adopted."""
        return None if name in self.adopted else super().producer(name)

    def initializer(self, name: str) -> TensorProto | None:
        """The initializer of that name; also a value that became a constant."""
        return self.adopted.get(name) or super().initializer(name)

    def is_overridable(self, name: str) -> bool:
        """Whether an initializer is only the default of a graph input, which callers may override."""
        return not self.key and self.ground.overridable and name in self.inputs

    def stated_number(self, name: str) -> int:
        """The number of the value of an initializer or Constant node (see `Values`); 0 for anything else.

        Raises:
            RefusedError: it cannot be read.
        """
        ground = self.ground
        tensor = self.initializer(name)
        if tensor is None:
            node = self.constant_node(name)
            return 0 if node is None else self._number_of_node(node)
        if self.is_overridable(name):
            if not ground.freeze_defaults:
                return 0
            ground.frozen.add(name)
        dims = tuple(tensor.dims[:])  # slicing to a list halves the time
        size = prod(dims)
        if size > LARGEST_CONSTANT:
            return 0
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
        is_small = prod(dims) <= LARGEST_CONSTANT
        return self.ground.values.number_of_attribute(attribute, self.ground.data_folder) if is_small else 0

    # For the resolver

    def value(self, name: str) -> Array | None:
        """The value of an initializer or Constant node of this graph; None for anything else."""
        return self.ground.values[self.stated_number(name)]

    def version(self, domain: str) -> int | None:
        """The opset version of a domain; None if unknown."""
        return super().version(domain) if domain else self.opset

    def note_trusted(self, name: str) -> None:
        """Note that the stated type of a value was used; for an input there is no other source."""
        self.ground.trusts_sizes = self.ground.trusts_sizes or name not in self.inputs

    def known(self, name: str) -> Known:
        """See `Scope.known`."""
        return self.ground.resolver.known(name, self)
