"""What the resolver asks of graphs, and the atoms that it makes for sizes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from onnx import NodeProto

from reducelower.model.value_info import StatedType
from reducelower.types.known import Question
from reducelower.types.sizes import Polynomial, Size

if TYPE_CHECKING:
    from reducelower.model.numbers import Array

__all__ = ["Atoms", "ContradictionError", "Graph", "Held", "Source"]


class ContradictionError(Exception):
    """The model states types that contradict what nodes yield, so none of them can be trusted."""


class Held(Protocol):
    """What a graph knows of a value without any node: that of a constant, or of a value from outside."""

    def answer(self, question: Question, value: Callable[[], Array | None]) -> Any:
        """The answer to a question: what `Known` has under that name. `value` reads that of a constant."""


class Source(NamedTuple):
    """A value that comes into a graph from outside, or out of one.

    Attributes:
        graph: where it is known.
        name: its name there.
        axes: how many axes it gains on its way, below zero those that it loses; None if its shape may change.
        at: which axis that is.
        along: graph and name of a value, and the axis there whose size is that of the one gained; None if unknown.
    """

    graph: Graph
    name: str
    axes: int | None = 0
    at: int = 0
    along: tuple[Graph, str, int] | None = None


class Graph(Protocol):
    """A graph as the resolver sees it. Names resolve as in ONNX: inner graphs see the values of those around them."""

    opset: int

    @property
    def place(self) -> Hashable:
        """What identifies the graph among those that the resolver is asked about."""

    def version(self, domain: str) -> int | None:
        """The version of a domain's operators; None if it is not imported."""

    def home(self, name: str) -> Graph:
        """The graph that defines a value: this one or an enclosing one."""

    def producer(self, name: str) -> NodeProto | None:
        """The node of this graph that computes a value."""

    def readers(self, name: str) -> Sequence[NodeProto]:
        """The nodes of this graph that read a value, as far as that is known."""

    def held(self, name: str) -> Held | None:
        """What is known about a constant of this graph, or a value from outside; None for any other value."""

    def value(self, name: str) -> Array | None:
        """The value of a constant of this graph; None for any other value.

        Raises:
            RefusedError: it cannot be read.
        """

    def stated_type(self, name: str) -> StatedType:
        """What this graph states of a value."""

    def handed(self, name: str) -> Sequence[Source]:
        """The values outside that become an input of this graph, one for each call of a function; none if unknown."""

    def note_trusted(self, name: str) -> None:
        """Note that what this graph states for a value was used."""

    def inside(self, node: NodeProto) -> Sequence[tuple[Graph, Sequence[str]]]:
        """The subgraphs of a node of this graph, or the body of the function it calls, with the names of outputs."""


@dataclass
class Atoms:
    """Numbers atoms: equal keys share one.

    Attributes:
        first: the first number.
    """

    first: int = 0
    _numbers: dict[Hashable, int] = field(default_factory=dict)
    _names: dict[int, str] = field(default_factory=dict)

    def __call__(self, key: Hashable) -> Polynomial:
        """The size that is this atom."""
        number = self._numbers.setdefault(key, self.first + len(self._numbers))
        if isinstance(key, str):
            self._names[number] = key
        return Polynomial.atom(number)

    def name(self, size: Size) -> str:
        """The name that the model has for a size; empty if it has none."""
        if isinstance(size, int):
            return ""
        (monomial, coefficient), *others = size.terms
        return self._names.get(monomial[0], "") if len(monomial) == coefficient == 1 and not others else ""
