"""A value with the answers about it, and the node that computes it with what the rules of operators ask for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from onnx import NodeProto

from reducelower.arguments import LARGEST_RANK
from reducelower.errors import RefusedError
from reducelower.model.attributes import value_of
from reducelower.model.schemas import plain_domain
from reducelower.model.value_info import StatedType
from reducelower.types.graphs import Constant, Graph
from reducelower.types.known import Elements, Known, Question, elements_of
from reducelower.types.sizes import Size

if TYPE_CHECKING:
    from reducelower.types.node_inference import Facts

__all__ = ["HOLDERS", "Call", "UnknownError", "Value"]

_Fact = TypeVar("_Fact")

HOLDERS = frozenset({"If", "Loop", "Scan"})
"""Operators of the default domain whose subgraphs are followed."""


class UnknownError(Exception):
    """A fact that a rule needs is unknown."""


class _Asked(Protocol):
    def ask(self, graph: Graph, question: Question, name: str) -> Any: ...


class Value:
    """A value with the answers about it.

    Attributes:
        home: the graph that defines it.
        name: its name there.
        held: an object with the facts that need no node (see `Graph.held`); None if there is none.
        call: the node that computes it; None if no node does.
        place: its position among the outputs of that node.
        is_at_border: whether it may enter a graph from outside, or leave one.
        answers: the answers so far, by question.
    """

    __slots__ = ("_stated", "answers", "call", "held", "home", "is_at_border", "name", "place")

    def __init__(self, home: Graph, name: str, held: object | None, call: Call | None = None, place: int = 0) -> None:
        self.home = home
        self.name = name
        self.held = held
        self.call = call
        self.place = place
        self.is_at_border = home.node is not None if call is None else call.inside is None
        self.answers: dict[Question, Any] = held.answers if isinstance(held, Constant) else {}
        self._stated: StatedType | None = None

    @property
    def stated(self) -> StatedType:
        """The type that its graph states for it."""
        if self._stated is None:
            self._stated = self.home.stated_type(self.name)
        return self._stated


class Call:
    """A node of a graph, and the facts about its inputs. Rules ask for them, and unknown ones raise `UnknownError`.

    Attributes:
        node: the node.
        graph: its graph.
        op_type: its operator.
        domain: its domain; empty for either spelling of the default one.
        inputs: the names of its inputs.
        inside: its subgraphs, if they are followed; None until a question needs them.
        given: the facts about its inputs in the last run of onnx's inference.
        inferred: the facts about its outputs that this run returned.
    """

    __slots__ = ("_resolver", "domain", "given", "graph", "inferred", "inputs", "inside", "node", "op_type")

    def __init__(self, node: NodeProto, graph: Graph, resolver: _Asked) -> None:
        """Take a node and what answers questions about its inputs: a weak reference, since that keeps this object."""
        self.node = node
        self.graph = graph
        self._resolver = resolver
        self.op_type = node.op_type
        self.domain = plain_domain(node.domain)
        self.inputs: Sequence[str] = node.input[:]
        self.inside: Sequence[Graph] | None = None if self.op_type in HOLDERS and not self.domain else ()
        self.given: Sequence[Facts | None] | None = None
        self.inferred: Sequence[Facts] = ()

    def by(self, rule: Callable[[Call], _Fact] | None) -> _Fact | None:
        """The result of a rule; None if something it needs is unknown. In a broken model anything may be."""
        try:
            return None if rule is None else rule(self)
        except (UnknownError, RefusedError, IndexError, TypeError, ValueError):
            return None

    def asked(self, question: Question, index: int) -> Any:
        """The answer to a question about an input; None if there is no such input."""
        name = self.inputs[index] if index < len(self.inputs) else ""
        return self._resolver.ask(self.graph, question, name) if name else None

    def needed(self, question: Question, index: int) -> Any:
        """The same; an unknown answer raises `UnknownError`."""
        inputs = self.inputs
        name = inputs[index] if index < len(inputs) else ""
        answer = self._resolver.ask(self.graph, question, name) if name else None
        if answer is None:
            raise UnknownError
        return answer

    def attribute(self, name: str, default: Any = None) -> Any:
        """The value of an attribute."""
        return value_of(self.node, name, default)

    def has(self, index: int) -> bool:
        """Whether the node has an input."""
        return index < len(self.inputs) and self.inputs[index] != ""

    def rank(self, index: int) -> int:
        """The rank of an input."""
        return self.needed("rank", index)  # type: ignore[no-any-return]

    def shape(self, index: int) -> tuple[Size, ...]:
        """The shape of an input."""
        return self.needed("shape", index)  # type: ignore[no-any-return]

    def elements(self, index: int) -> Elements:
        """The contents of an input."""
        return elements_of(self.needed("contents", index))

    def elements_if_known(self, index: int) -> Elements | None:
        """The contents of an input; None if they are unknown."""
        contents = self.asked("contents", index)
        return None if contents is None else elements_of(contents)

    def numbers(self, index: int) -> Sequence[int]:
        """The contents of an input, all of them numbers."""
        numbers = Known(elements=self.elements(index)).numbers
        if numbers is None:
            raise UnknownError
        return numbers

    def ints(self, name: str, index: int, default: Sequence[int] | None = None) -> Sequence[int]:
        """The integers of an attribute, or of an input if there is no such attribute."""
        ints = self.attribute(name)
        if ints is None:
            ints = self.numbers(index) if self.has(index) else default
        if ints is None:
            raise UnknownError
        return [int(each) for each in ints]

    def any_rank(self) -> int:
        """The rank that all inputs share, from any input where it is known."""
        for index in range(len(self.inputs)):
            rank = self.asked("rank", index)
            if rank is not None:
                return int(rank)
        raise UnknownError

    def length(self, index: int) -> int:
        """The length of an input that is a vector of sizes or axes; a broken model may claim any."""
        (length,) = self.shape(index)
        if not isinstance(length, int) or length > LARGEST_RANK:
            raise UnknownError
        return length

    def count_of_axes(self) -> int:
        """The number of axes in the node's attribute or second input."""
        axes = self.attribute("axes")
        return self.length(1) if axes is None else len(axes)

    def count_of_removed(self) -> int:
        """The number of removed axes; unknown if no axes are given, which may mean all of them."""
        count = self.count_of_axes()
        if not count:
            raise UnknownError
        return count

    def axis(self) -> int:
        """The axis in the attribute, counted from the front; the first by default."""
        rank, axis = self.rank(0), int(self.attribute("axis", 0))
        if not -rank <= axis < rank:
            raise UnknownError
        return axis % rank

    def bounds(self) -> list[tuple[int, Size | None, Size | None, int]]:
        """Axis, start, end and step of a Slice."""
        starts, ends = (
            self.elements(index) if self.has(index) else self.ints(name, index)
            for name, index in (("starts", 1), ("ends", 2))
        )
        axes = self.ints("axes", 3, range(len(starts)))
        steps = self.ints("steps", 4, [1] * len(starts))
        return list(zip(axes, starts, ends, steps, strict=True))
