"""A place that looks like an operator: the form, the match, and the replacement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onnx import NodeProto

from reducelower.model.numbers import Array
from reducelower.recompose.expressions import Form
from reducelower.recompose.search import Match
from reducelower.recompose.view import OUTPUT, View
from reducelower.scope.blanks import blank

__all__ = ["Answer", "Place"]


@dataclass(frozen=True)
class Answer:
    """The replacement of a match, in which blanks stand for the names of values.

    Attributes:
        nodes: the new nodes; empty if there are none, and then `why` may say what is in the way.
        by_opset: whether another opset version would allow it.
        blocks_parts: whether no part of the match may be taken for the operator either.
        constants: constants for the nodes, with their name tails, by blank.
        between: name tails of values between the nodes, by blank.
    """

    nodes: Sequence[NodeProto] = ()
    why: str = ""
    by_opset: bool = False
    blocks_parts: bool = False
    constants: Mapping[str, tuple[Array, str]] = field(default_factory=dict)
    between: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """A match, the view to ask about its values, and what its `Answer` has so far."""

    form: Form
    match: Match
    view: View
    opset: int
    constants: dict[str, tuple[Array, str]] = field(default_factory=dict)
    between: dict[str, str] = field(default_factory=dict)

    def answer(self, nodes: Sequence[NodeProto]) -> Answer:
        """The answer with these nodes."""
        return Answer(nodes, constants=self.constants, between=self.between)

    def constant(self, value: Array, name: str) -> str:
        """Add a constant; return its blank."""
        name_blank = blank(f"c{len(self.constants)}")
        self.constants[name_blank] = (value, name.lower())
        return name_blank

    def fresh(self, tail: str) -> str:
        """The blank of a new value whose name gets this tail."""
        name_blank = blank(f"b{len(self.between)}")
        self.between[name_blank] = tail
        return name_blank

    @property
    def values(self) -> Mapping[str, int]:
        """Value numbers by variable of the form."""
        return self.match.values

    @property
    def output(self) -> int:
        """The value that the match computes."""
        return OUTPUT

    @property
    def data(self) -> int:
        """The value to which the operator is applied."""
        return self.match.values[self.form.inputs[0]]

    @property
    def axes(self) -> tuple[int, ...]:
        """The reduced axes, counted from the front if the rank is known."""
        assert self.match.axes is not None
        return self.match.axes.counted(self.view)
