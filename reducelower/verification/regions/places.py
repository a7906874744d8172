"""A graph or subgraph of a model, and what is known about its values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper

from reducelower.model.graph import subgraphs
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.numerics.measure import Array
from reducelower.scope.values import dense_tensor, held_by
from reducelower.types import GraphKey, Inference
from reducelower.types.graphs import Graph
from reducelower.verification.inputs.made import Dims, tensor_dims
from reducelower.verification.operators import RANDOM
from reducelower.verification.regions.numbering import opsets_of
from reducelower.verification.running.weights import held_array, is_held

__all__ = ["Place"]

_GIVING_SIZES = ("Shape", "Size")


@dataclass(eq=False, repr=False)
class Place:
    """A graph of one model, with those around it."""

    model: ModelProto
    inference: Inference
    key: GraphKey = ()
    parent: Place | None = None

    def inside(self, index: int, number: int) -> Place:
        """The place of a graph inside the node at an index here, one of its graphs by number."""
        return Place(self.model, self.inference, (*self.key, index, number), self)

    @cached_property
    def _graph(self) -> Graph:
        return self.inference.graph(self.key)

    @property
    def holder(self) -> GraphProto:
        """The graph itself."""
        return self._graph.holder

    @cached_property
    def opsets(self) -> dict[str, int]:
        """Opset version per domain; the default domain is the empty string."""
        return opsets_of(self.model)

    @cached_property
    def _initializers(self) -> dict[str, TensorProto]:
        sparse = {item.values.name: dense_tensor(item) for item in self.holder.sparse_initializer}
        return {**{item.name: item for item in self.holder.initializer}, **sparse}

    @cached_property
    def _constants(self) -> dict[str, NodeProto]:
        nodes = [node for node in self.holder.node if node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS]
        return {node.output[0]: node for node in nodes}

    def type_of(self, name: str) -> tuple[int, Dims | None] | None:
        """Element type and sizes of a value; None if neither the model nor shape inference states them."""
        found = self.inference.type(self.key, name)
        known = None if found is None else found.tensor_type
        return None if known is None or not known.elem_type else (known.elem_type, tensor_dims(known))

    def stated_dims(self, name: str) -> Dims | None:
        """The sizes of a value that the model itself states."""
        return self._graph.stated_type(name).sizes

    def is_overridable(self, name: str) -> bool:
        """Whether the value is a default that a caller may override: an initializer that is also a graph input."""
        if self.parent is not None:
            return name not in self._initializers and self.parent.is_overridable(name)
        return self.model.ir_version >= 4 and name in self._initializers and name in self._graph.inputs

    def _holds(self, name: str) -> bool:
        return name in self._initializers or name in self._graph.inputs or name in self.positions

    @property
    def positions(self) -> Mapping[str, int]:
        """By name of a value, the position of the node here that computes it."""
        return self._graph.positions

    def producer(self, name: str) -> NodeProto | None:
        """The node that computes a value, here or in a scope around."""
        return self._graph.producer(name) or (self.parent.producer(name) if self.parent else None)

    def constant(self, name: str) -> Array | TensorProto | None:
        """The value of an initializer or Constant node; the tensor itself where its values are in another file."""
        tensor = self._initializers.get(name)
        if tensor is not None:
            return _value(tensor)
        node = self._constants.get(name)
        if node is not None:
            held = held_by(node)
            return None if held is None else _value(held)
        if name in self._graph.inputs or self.parent is None:
            return None
        return self.parent.constant(name)

    def is_fixed(self, name: str) -> bool:
        """Whether a value is the same in every run: a constant, or computed from constants alone."""
        return name in self._fixed or self._is_around(name, Place.is_fixed)

    def is_of_sizes(self, name: str) -> bool:
        """Whether a value depends on the sizes of others, and on nothing else but constants."""
        return name in self._of_sizes or self._is_around(name, Place.is_of_sizes)

    def _is_around(self, name: str, is_so: Callable[[Place, str], bool]) -> bool:
        return not self._holds(name) and self.parent is not None and is_so(self.parent, name)

    @cached_property
    def _fixed(self) -> set[str]:
        initializers = {name for name in self._initializers if not self.is_overridable(name)}
        return self._computed_from(
            initializers | set(self._constants), lambda name: self._is_around(name, Place.is_fixed)
        )

    @cached_property
    def _of_sizes(self) -> set[str]:
        def is_around(name: str) -> bool:
            return self._is_around(name, Place.is_fixed) or self._is_around(name, Place.is_of_sizes)

        return self._computed_from(self._fixed, is_around, _GIVING_SIZES) - self._fixed

    def _computed_from(
        self, values: Set[str], is_around: Callable[[str], bool], sources: Collection[str] = ()
    ) -> set[str]:
        """Some values here, the outputs of some operators, and what is computed from these and from values around."""
        found = set(values)
        for node in self.holder.node:
            given = [operand for operand in node.input if operand]
            follows = given and all(name in found or is_around(name) for name in given)
            repeats = follows and node.op_type not in RANDOM and not any(True for _ in subgraphs(node))
            if repeats or node.op_type in sources:
                found.update(name for name in node.output if name)
        return found

    def shape(self, name: str) -> tuple[int | None, ...] | None:
        """The shape of a value, None standing for a size that is not known."""
        known = self.type_of(name)
        dims = None if known is None else known[1]
        return None if dims is None else tuple(dim if isinstance(dim, int) else None for dim in dims)

    def element_type(self, name: str) -> int | None:
        """The element type of a tensor; None where it is not known."""
        known = self.type_of(name)
        return None if known is None else known[0]

    def evaluated(self, name: str) -> Array | None:
        """The value of a constant that no caller may override, or of what small nodes compute from such and from known
        sizes."""
        value = None if self.is_overridable(name) else self.constant(name)
        return value if isinstance(value, np.ndarray) else self.inference.constant(self.key, name)


def _value(tensor: TensorProto) -> Array | TensorProto:
    if is_held(tensor):
        return held_array(tensor)
    return tensor if tensor.data_location == TensorProto.EXTERNAL else numpy_helper.to_array(tensor)
