"""A graph or subgraph of one of two aligned models: what is known about its values, and their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto

from reducelower.model.constants import dense_tensor, tensor_of
from reducelower.model.graph import subgraphs
from reducelower.model.value_info import stated_type
from reducelower.numerics.measure import Array
from reducelower.types import GraphKey, Inference
from reducelower.types.graphs import Graph
from reducelower.verification.inputs.declared import Dims
from reducelower.verification.operators import RANDOM
from reducelower.verification.regions.numbering import Numbers, inside, is_constant, opsets_of
from reducelower.verification.running.weights import value_of

__all__ = ["Place"]


@dataclass(eq=False, repr=False)
class Place:
    """A graph of one model, with those around it.

    Attributes:
        numbers: the numbers of its values, and of those around it.
    """

    model: ModelProto
    inference: Inference
    key: GraphKey = ()
    parent: Place | None = None
    numbers: Numbers = field(default_factory=dict)

    def inside(self, index: int, number: int) -> Place:
        """The place of a graph inside the node at an index here, one of its graphs by number."""
        return Place(self.model, self.inference, (*self.key, index, number), self, inside(self.numbers))

    @cached_property
    def graph(self) -> Graph:
        """The graph as inference sees it."""
        return self.inference.graph(self.key)

    @property
    def holder(self) -> GraphProto:
        """Its message."""
        return self.graph.holder

    @cached_property
    def opsets(self) -> dict[str, int]:
        """Opset version per domain; the default domain is the empty string."""
        return opsets_of(self.model)

    @property
    def positions(self) -> Mapping[str, int]:
        """By name of a value, the position of the node here that computes it."""
        return self.graph.positions

    def type_of(self, name: str) -> tuple[int, Dims | None]:
        """Element type and sizes of a value; 0 and None if neither the model nor inference states them."""
        found = self.inference.type(name, self.graph, may_lack_rank=True)
        known = stated_type(found)
        return (known.element_type, known.sizes) if known.element_type else (0, None)

    def constant(self, name: str) -> Array | TensorProto | None:
        """The value of an initializer that no caller may override, or of a Constant node.

        The tensor itself if its values are in another file.
        """
        home = self.graph.home(name)
        tensor = None if home.has_open_defaults and name in home.inputs else _tensor(home, name)
        value = None if tensor is None else value_of(tensor)
        return tensor if value is None else value

    def evaluated(self, name: str) -> Array | None:
        """The value of a constant, or of what small nodes compute from constants and known sizes."""
        value = self.constant(name)
        return value if isinstance(value, np.ndarray) else self.inference.ask(self.graph, "constant", name)

    def is_fixed(self, name: str) -> bool:
        """Whether a value is the same in every run: a constant, or computed from constants alone."""
        is_here = self.parent is None or self.graph.defines(name)
        return name in self._fixed if is_here or self.parent is None else self.parent.is_fixed(name)

    @cached_property
    def _fixed(self) -> set[str]:
        """The values here that are the same in every run, and those around that are read here."""
        holder = self.holder
        held = (*(item.name for item in holder.initializer), *(item.values.name for item in holder.sparse_initializer))
        found = {name for name in held if not (self.graph.has_open_defaults and name in self.graph.inputs)}
        if self.parent is not None:
            outside = {name for node in holder.node for name in node.input if not self.graph.defines(name)}
            found |= set(filter(self.parent.is_fixed, outside))
        for node in holder.node:
            read = [name for name in node.input if name]
            is_computed = read and found.issuperset(read) and node.op_type not in RANDOM and not any(subgraphs(node))
            if is_constant(node) or is_computed:
                found.update(filter(None, node.output))
        return found


def _tensor(graph: Graph, name: str) -> TensorProto | None:
    """The tensor of an initializer or Constant node, a sparse one as `dense_tensor`."""
    node = graph.constant_node(name)
    if node is not None:
        return tensor_of(node)
    sparse = next((item for item in graph.holder.sparse_initializer if item.values.name == name), None)
    return graph.initializer(name) if sparse is None else dense_tensor(sparse)
