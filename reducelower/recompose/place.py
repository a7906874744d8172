"""Something that looks like an operator: its form, and where it stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto, numpy_helper

from reducelower.recompose.expressions import Form
from reducelower.recompose.surroundings import Surroundings
from reducelower.recompose.unify import Found
from reducelower.scope.graph import GraphScope

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.generic]

__all__ = ["Place"]


@dataclass(frozen=True)
class Place:
    """Something that looks like an operator.

    Attributes:
        found: the form that it has, and where.
        last: position of the node that yields its result.
        scope: the graph it stands in.
        surroundings: who yields and reads what there.
        constants: values to add, by what the nodes call them until it is settled that they come.
        released: constants that the nodes no longer read.
    """

    found: Found
    last: int
    scope: GraphScope
    surroundings: Surroundings
    constants: dict[str, tuple[Array, str]] = field(default_factory=dict)
    released: list[str] = field(default_factory=list)

    def constant(self, value: Array, name: str) -> str:
        """What the nodes call a constant of this value, until `settle`."""
        self.constants[f"\0{len(self.constants)}"] = (value, name.lower())
        return f"\0{len(self.constants) - 1}"

    def settle(self, nodes: Sequence[NodeProto]) -> None:
        """Add the constants that the nodes read."""
        for name in self.released:
            self.scope.release(name)
        for node in nodes if self.constants else ():
            for at, name in enumerate(node.input):
                if name in self.constants:
                    value, tail = self.constants[name]
                    node.input[at] = self.scope.add_constant(value, numpy_helper.from_array(value), tail)

    @property
    def form(self) -> Form:
        """The form that it has."""
        return self.found.form

    @property
    def values(self) -> Mapping[str, str]:
        """What each variable of the form is."""
        return self.found.values

    @property
    def output(self) -> str:
        """The value that it yields."""
        return self.surroundings.nodes[self.last].output[0]

    @property
    def data(self) -> str:
        """The value that the operator is applied to."""
        return self.found.values[self.form.inputs[0]]

    @property
    def axes(self) -> tuple[int, ...]:
        """What is reduced over; counted from the front where the rank is known."""
        assert self.found.axes is not None
        return self.found.axes.counted

    @property
    def is_told(self) -> bool:
        """Whether to say so where it is left: of a Reduce operator it is not, which many things look like."""
        return not self.form.op_type.startswith("Reduce")

    @property
    def is_ours(self) -> bool:
        """Whether this is what a rule gives, for this element type."""
        return bool(self.form.element_type)
