"""The constants that one graph or function body of the model states."""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

from onnx import FunctionProto, GraphProto, NodeProto, TensorProto

from reducelower.model.attributes import refuse_reference
from reducelower.model.constants import tensor_of
from reducelower.model.nodelist import NodeList
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.model.skeleton import LARGEST_KEPT
from reducelower.scope.fold import LARGEST
from reducelower.scope.ground import Ground
from reducelower.scope.stated import places
from reducelower.scope.values import read_tensor

if TYPE_CHECKING:
    from reducelower.model.numbers import Array

__all__ = ["GraphConstants"]


class GraphConstants:
    """Initializers and Constant nodes of one graph, and what was added to them.

    Attributes:
        adopted: tensors that were made the values of names since.
        inputs: the names of the inputs of the graph or function.
        is_main: whether this is the main graph.
    """

    def __init__(self, ground: Ground, holder: GraphProto | FunctionProto, nodes: NodeList, *, is_main: bool) -> None:
        """Take a graph or function and its nodes."""
        self.inputs = frozenset(value if isinstance(value, str) else value.name for value in holder.input)
        self.is_main = is_main
        self._ground = ground
        self._nodes = nodes
        self._has_nodes = "Constant" in nodes.operators()
        self._initializers = holder.initializer if isinstance(holder, GraphProto) else ()
        self.adopted: dict[str, TensorProto] = {}

    @cached_property
    def places(self) -> dict[str, int]:
        """Positions of the initializers by name."""
        return places(self._initializers)

    def drop_positions(self) -> None:
        """Find the positions anew, since initializers were removed."""
        self.__dict__.pop("places", None)

    def has_initializer(self, name: str) -> bool:
        """Whether an initializer, or a tensor that was adopted, has that name."""
        return name in self.adopted or name in self.places

    def __contains__(self, name: str) -> bool:
        return self.has_initializer(name) or self.node(name) is not None

    def node(self, name: str) -> NodeProto | None:
        """The Constant node that yields a value, before any edit; None if none does."""
        made = self._nodes.producer(name) if self._has_nodes else None
        is_constant = made is not None and made.op_type == "Constant" and made.domain in DEFAULT_DOMAINS
        return made if is_constant else None

    def is_overridable(self, name: str) -> bool:
        """Whether an initializer is only the default of a graph input, which callers may override."""
        return self.is_main and self._ground.overridable and name in self.inputs

    def tensor(self, name: str) -> TensorProto | None:
        """What an initializer or Constant node holds; None if there is none of that name."""
        found = self._initializer(name)
        node = self.node(name) if found is None else None
        return found if node is None else tensor_of(node)

    def _initializer(self, name: str) -> TensorProto | None:
        found = self.adopted.get(name)
        place = self.places.get(name) if found is None else None
        return found if place is None else self._initializers[place]

    def number(self, name: str) -> int:
        """The number of the value of an initializer or Constant node (see `Values`); 0 for anything else.

        Raises:
            RefusedError: it cannot be read.
        """
        ground, tensor = self._ground, self._initializer(name)
        if tensor is None:
            node = self.node(name)
            return 0 if node is None else self._number_of_node(node)
        if self.is_overridable(name):
            if not ground.freeze_defaults:
                return 0
            ground.frozen.add(name)
        dims = tuple(tensor.dims[:])  # slicing to a list halves the time
        size = prod(dims)
        if size > LARGEST:
            return 0
        if size > LARGEST_KEPT and self.is_main:
            tensor = ground.weight(name) or tensor
        if tensor.data_location == TensorProto.EXTERNAL:
            folder = ground.data_folder
            return 0 if folder is None else ground.values.number(read_tensor(tensor, folder))
        return ground.values.number_of_tensor(tensor, dims)

    def value(self, name: str) -> Array | None:
        """The value of an initializer or Constant node; None for anything else."""
        return self._ground.values[self.number(name)]

    def _number_of_node(self, node: NodeProto) -> int:
        """The number of a Constant node's value."""
        if not node.attribute:
            return 0
        attribute = node.attribute[0]
        refuse_reference(attribute)
        dims = {"value": attribute.t.dims, "sparse_value": attribute.sparse_tensor.dims}.get(attribute.name, ())
        is_small = prod(dims) <= LARGEST
        return self._ground.values.number_of_attribute(attribute, self._ground.data_folder) if is_small else 0
