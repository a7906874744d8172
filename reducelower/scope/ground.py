"""The state that all scopes of one run share, and a graph as the resolver sees it."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING

from onnx import GraphProto, NodeProto, TensorProto

from reducelower.files import DataFolder
from reducelower.model.attributes import refuse_reference
from reducelower.model.names import Names
from reducelower.model.skeleton import LARGEST_CONSTANT
from reducelower.scope.values import Values, read_tensor
from reducelower.types import Inference, Resolver
from reducelower.types.graphs import Graph
from reducelower.types.known import Known
from reducelower.types.witnesses import Witnesses

if TYPE_CHECKING:
    from reducelower.model.numbers import Array
    from reducelower.types import GraphKey

__all__ = ["GraphView", "Ground"]


@dataclass(eq=False)
class Ground:
    """The state that all scopes of one run share: names, overrides, inference, and how constants are written.

    Attributes:
        names: makes fresh names.
        source: the types of the model before any rewrite.
        opset: opset version of the target.
        data_folder: the folder of external data; None if unknown.
        freeze_defaults: whether an initializer that is also a graph input counts as constant.
        overridable: whether callers may override such an initializer (IR version 4 and later).
        initializers_stand_alone: whether an initializer need not be a graph input (IR version 4 and later).
        assumes_nonempty: whether no dimension is zero when the model runs.
        values: numbers of constant values, which other runs may share.
        frozen: names of initializers whose defaults were used as constants.
        witnesses: which sizes are not zero; None until a rule asks.
    """

    names: Names
    source: Inference
    opset: int
    data_folder: DataFolder | None
    freeze_defaults: bool
    overridable: bool
    initializers_stand_alone: bool
    assumes_nonempty: bool = False
    values: Values = field(default_factory=Values)
    frozen: set[str] = field(default_factory=set)
    witnesses: Witnesses | None = None

    @property
    def resolver(self) -> Resolver:
        """Answers questions about values, with symbolic sizes."""
        return self.source

    def clear_caches(self) -> None:
        """Clear the caches at the end of a run.

        Their graphs refer back to this object. The cycle would keep the model and its weights until garbage collection.
        """
        self.source.clear()
        self.witnesses = None


class GraphView(Graph):
    """A graph of the source, which nobody edits, with the constants that a run adds.

    Attributes:
        adopted: the tensors of values that a run added or made constant, by name.
    """

    def __init__(self, ground: Ground, opset: int, key: GraphKey) -> None:
        """Take the shared state of the run, the opset version that nodes are written for, and the key."""
        source = ground.source.graph(key)
        # The enclosing graph may have been replaced by that of the run since.
        around = ground.source.graph(key[:-2]) if key else None
        super().__init__(
            source.holder, around, source.node, source.imports, ground.source.graph, key,
            has_open_defaults=source.has_open_defaults,
        )  # fmt: skip
        ground.source.put(self)
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
        if name in self.adopted:
            return self.adopted[name]
        at = self._initializers.get(name)
        return None if at is None or not isinstance(self.holder, GraphProto) else self.holder.initializer[at]

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

    def known(self, name: str) -> Known:
        """See `Scope.known`."""
        return self.ground.resolver.known(name, self)
