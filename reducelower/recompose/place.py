"""A place that looks like an operator: the form, the match, and what its replacement adds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reducelower.model.numbers import Array
from reducelower.recompose.expressions import Form
from reducelower.recompose.search import Axes, Match
from reducelower.recompose.surroundings import Surroundings
from reducelower.scope.blanks import blank

__all__ = ["Place"]


@dataclass(frozen=True)
class Place:
    """A match in a graph.

    Attributes:
        output: the value that the match computes.
        constants: new constants for the replacement, with the ends of their names, by blank.
        between: the ends of the names of new values between its nodes, by blank.
    """

    form: Form
    match: Match
    output: str
    graph: Surroundings
    opset: int
    constants: dict[str, tuple[Array, str]] = field(default_factory=dict)
    between: dict[str, str] = field(default_factory=dict)

    def constant(self, value: Array, name: str) -> str:
        """Add a constant; return its blank, which gets a name if the replacement is taken."""
        name_blank = blank(f"c{len(self.constants)}")
        self.constants[name_blank] = (value, name.lower())
        return name_blank

    def fresh(self, tail: str) -> str:
        """The blank of a new value whose name gets this end."""
        name_blank = blank(f"b{len(self.between)}")
        self.between[name_blank] = tail
        return name_blank

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
