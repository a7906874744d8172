"""A place that looks like an operator: its form, what is known about its values, and its replacement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onnx import NodeProto

from reducelower.model.numbers import Array
from reducelower.recompose.expressions import Form
from reducelower.recompose.search import Found
from reducelower.recompose.view import OUTPUT, View
from reducelower.scope.blanks import blank

__all__ = ["Answer", "Place"]


@dataclass(frozen=True)
class Answer:
    """The replacement of a candidate; values go by blanks.

    Attributes:
        nodes: the new nodes; empty if `why` says what is in the way.
        by_opset: whether another opset version would allow it.
        wholly: whether no part of it may be taken for the operator either.
        constants: constants for the nodes, with their name tails, by blank.
        between: name tails of values between the nodes, by blank.
        released: values that the nodes no longer read.
    """

    nodes: Sequence[NodeProto] = ()
    why: str = ""
    by_opset: bool = False
    wholly: bool = False
    constants: Mapping[str, tuple[Array, str]] = field(default_factory=dict)
    between: Mapping[str, str] = field(default_factory=dict)
    released: Sequence[int] = ()


@dataclass(frozen=True)
class Place:
    """A candidate, what is known about its values, and its `Answer` so far."""

    form: Form
    found: Found
    view: View
    opset: int
    constants: dict[str, tuple[Array, str]] = field(default_factory=dict)
    between: dict[str, str] = field(default_factory=dict)
    released: list[int] = field(default_factory=list)

    def answer(self, nodes: Sequence[NodeProto]) -> Answer:
        """The answer with these nodes."""
        return Answer(nodes, constants=self.constants, between=self.between, released=self.released)

    def constant(self, value: Array, name: str) -> str:
        """Add a constant; return its blank."""
        called = blank(f"c{len(self.constants)}")
        self.constants[called] = (value, name.lower())
        return called

    def fresh(self, tail: str) -> str:
        """The blank of a new value whose name gets this tail."""
        called = blank(f"b{len(self.between)}")
        self.between[called] = tail
        return called

    @property
    def values(self) -> Mapping[str, int]:
        """Value numbers by variable of the form."""
        return self.found.values

    @property
    def output(self) -> int:
        """The value that it computes."""
        return OUTPUT

    @property
    def data(self) -> int:
        """The value to which the operator is applied."""
        return self.found.values[self.form.inputs[0]]

    @property
    def axes(self) -> tuple[int, ...]:
        """The reduced axes, counted from the front if the rank is known."""
        assert self.found.axes is not None
        return self.found.axes.counted(self.view)

    @property
    def is_ours(self) -> bool:
        """Whether the form is a rule's, for this element type."""
        return bool(self.form.element_type)
