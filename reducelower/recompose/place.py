"""Something that looks like an operator: its form, what is known of its values, and what comes in its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onnx import NodeProto

from reducelower.model.numbers import Array
from reducelower.recompose.expressions import Form
from reducelower.recompose.search import Found
from reducelower.recompose.view import OUTPUT, View
from reducelower.scope.node import blank

__all__ = ["Answer", "Place"]


@dataclass(frozen=True)
class Answer:
    """What becomes of something that looks like an operator; values go by blanks.

    Attributes:
        nodes: what to put in its place; empty where something is in the way, which `why` says.
        by_opset: whether another opset version would do.
        wholly: whether no part of it is to be taken for the operator either.
        constants: constants that the nodes read, with the ends of their names, by blank.
        between: ends of the names of values between the nodes, by blank.
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
    """Something that looks like an operator, what is known of its values, and what its `Answer` is to say so far."""

    form: Form
    found: Found
    view: View
    opset: int
    constants: dict[str, tuple[Array, str]] = field(default_factory=dict)
    between: dict[str, str] = field(default_factory=dict)
    released: list[int] = field(default_factory=list)

    def answer(self, nodes: Sequence[NodeProto]) -> Answer:
        """The answer that these nodes come in its place."""
        return Answer(nodes, constants=self.constants, between=self.between, released=self.released)

    def constant(self, value: Array, name: str) -> str:
        """What the nodes call a constant that is added."""
        called = blank(f"c{len(self.constants)}")
        self.constants[called] = (value, name.lower())
        return called

    def fresh(self, tail: str) -> str:
        """What the nodes call a value between them, whose name is to end so."""
        called = blank(f"b{len(self.between)}")
        self.between[called] = tail
        return called

    @property
    def values(self) -> Mapping[str, int]:
        """What value each variable of the form is."""
        return self.found.values

    @property
    def output(self) -> int:
        """The value that it yields."""
        return OUTPUT

    @property
    def data(self) -> int:
        """The value that the operator is applied to."""
        return self.found.values[self.form.inputs[0]]

    @property
    def axes(self) -> tuple[int, ...]:
        """What is reduced over; counted from the front where the rank is known."""
        assert self.found.axes is not None
        return self.found.axes.counted(self.view)

    @property
    def is_ours(self) -> bool:
        """Whether this is what a rule gives, for this element type."""
        return bool(self.form.element_type)
