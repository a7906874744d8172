"""A region: the nodes of both sides, what they are given, and what they hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import (
    NodeProto,
    TensorProto,
    helper,
)

from reducelower.model.graph import subgraphs
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.numerics.measure import Array
from reducelower.numerics.reductions import REDUCTIONS
from reducelower.plan import Site
from reducelower.verification.regions.numbering import attributes
from reducelower.verification.regions.places import Dims, Place

__all__ = ["SMALL_CONSTANT", "FreeInput", "Pair", "free_input"]

SMALL_CONSTANT = 64  # elements; larger ones are weights, and random values do as well


@dataclass(frozen=True)
class FreeInput:
    """An input of both small models; the element type is 0 and the sizes None where they are not known."""

    name: str
    element_type: int
    dims: Dims | None


@dataclass
class Pair:
    """One region, ready to be built as two small models: the site of a rewrite, or whatever else differs.

    Where several nodes were raised to one operator, that one is `node`, though it came after: its meaning is what tells
    what to try.

    Attributes:
        site: from the plan; for a region that no plan knows, what stands for it.
        nodes: the original nodes, one for the site of a plan.
        replacement: the nodes in its place, with what they need from outside the site's range.
        inputs: what both models are fed.
        constants: what both models hold, by name, before and after.
        outputs: what both sides compute.
        key: equal for sites that are the same up to names and sizes.
        sizes: equal for those of them that have the same sizes.
        ranks: those that are known of the outputs, where that of an input is not.
    """

    site: Site
    nodes: list[NodeProto]
    replacement: list[NodeProto]
    inputs: list[FreeInput]
    constants: tuple[dict[str, Array], dict[str, Array]]
    before: Place
    after: Place
    outputs: list[str]
    key: tuple[Any, ...] = field(default=())
    sizes: tuple[Any, ...] = field(default=())
    ranks: tuple[int | None, ...] = ()

    @property
    def node(self) -> NodeProto:
        """The original node, the last one where there are several."""
        return self.nodes[-1]

    @property
    def identity(self) -> tuple[Any, ...]:
        """Equal for sites that are the same up to names."""
        return self.key, self.sizes

    @property
    def is_raised(self) -> bool:
        """Whether the roles are the other way round: `replacement` stands in the source, `node` in the result."""
        return bool(self.site.raised_from)

    @property
    def is_carried(self) -> bool:
        """Whether both sides are the same node, for other versions of its operator."""
        if len(self.nodes) != 1 or len(self.replacement) != 1:
            return False
        one, other = self.nodes[0], self.replacement[0]
        return list(one.input) == list(other.input) and self.are_alike(one, other)

    def are_alike(self, one: NodeProto, other: NodeProto) -> bool:
        """Whether a node of the first model and one of the second have one operator and the same attributes."""
        kinds = [
            (node.op_type, node.domain, attributes(node, place.opsets.get("", 1)))
            for node, place in ((one, self.before), (other, self.after))
        ]
        return kinds[0] == kinds[1] and not any(True for _ in subgraphs(one))

    @property
    def is_reduction(self) -> bool:
        """Whether the node is one of the ten Reduce operators, of data that is fed."""
        return self._is_reduce and any(item.name == self.node.input[0] for item in self.inputs)

    @property
    def has_formula(self) -> bool:
        """Whether it is known what the node gives: a Reduce operator of data that is fed, or of constants alone."""
        return self.is_reduction or (self._is_reduce and not self.inputs)

    @property
    def _is_reduce(self) -> bool:
        return len(self.nodes) == 1 and self.node.op_type in REDUCTIONS and self.node.domain in DEFAULT_DOMAINS


def free_input(place: Place, name: str) -> FreeInput:
    """What is known of a value that is fed."""
    known = place.type_of(name)
    if known is None:
        value = place.constant(name)
        if isinstance(value, np.ndarray):
            return FreeInput(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        if isinstance(value, TensorProto):
            return FreeInput(name, value.data_type, tuple(value.dims))
        return FreeInput(name, 0, None)
    return FreeInput(name, *known)
