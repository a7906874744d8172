"""A place that looks like an operator: the form, the match, and what replaces it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from onnx import NodeProto, numpy_helper

from reducelower.model.numbers import Array
from reducelower.recompose.expressions import Form
from reducelower.recompose.search import Axes, Match
from reducelower.recompose.surroundings import Surroundings
from reducelower.scope.blanks import blank
from reducelower.scope.graph import GraphScope

__all__ = ["Place"]


@dataclass(eq=False, slots=True)
class Place:
    """A match in a graph; positions are those of its nodes.

    Attributes:
        last: the node that computes the result.
        form_nodes: all nodes of the form, including those that other nodes still need.
        region: the nodes to remove; it shrinks as other consumers are found.
        nodes: what replaces them; constants that it adds are in blanks.
        constants: new constants for the replacement, with the ends of their names, by blank.
    """

    form: Form
    match: Match
    last: int
    graph: Surroundings
    opset: int
    form_nodes: frozenset[int] = frozenset()
    region: frozenset[int] = frozenset()
    nodes: list[NodeProto] = field(default_factory=list)
    constants: dict[str, tuple[Array, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Find the positions of the nodes."""
        self.form_nodes = self.region = frozenset(map(self.graph.producers.__getitem__, self.match.nodes))

    def constant(self, value: Array, name: str) -> str:
        """Add a constant; return its blank, which gets a name if the replacement is taken."""
        name_blank = blank(f"c{len(self.constants)}")
        self.constants[name_blank] = (value, name.lower())
        return name_blank

    @property
    def output(self) -> str:
        """The value that the match computes."""
        return self.graph.outputs[self.last][0]

    @property
    def values(self) -> Mapping[str, str]:
        """Values by variable of the form."""
        return self.match.values

    @property
    def data(self) -> str:
        """The value to which the operator is applied."""
        return self.match.values[self.form.inputs[0]]

    @property
    def axes(self) -> tuple[int, ...]:
        """The reduced axes, counted from the front if the rank is known."""
        return (self.match.axes or Axes((), self.data, None)).counted(self.graph)

    @property
    def reads(self) -> Iterator[str]:
        """The existing values that the new nodes read."""
        return (name for node in self.nodes for name in node.input if name not in self.constants)

    def settle(self, scope: GraphScope) -> list[NodeProto]:
        """The new nodes; this adds their constants."""
        names = {
            called: scope.add_constant(constant, numpy_helper.from_array(constant), tail)
            for called, (constant, tail) in self.constants.items()
        }
        for node in self.nodes:
            node.input[:] = [names.get(called, called) for called in node.input]
        return self.nodes
