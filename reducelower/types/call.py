"""A node with the facts about its inputs that the rules of operators ask for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from onnx import NodeProto

from reducelower.arguments import LARGEST_RANK
from reducelower.model.attributes import value_of
from reducelower.types.known import Elements, Known
from reducelower.types.sizes import Size

__all__ = ["Call", "UnknownError"]


class UnknownError(Exception):
    """A fact that a rule needs is unknown."""


@dataclass(slots=True)
class Call:
    """A node with the facts about its inputs, each resolved when a rule asks. Unknown ones raise `UnknownError`.

    Attributes:
        node: the node.
        ask: answers ``shape``, ``rank`` or ``elements`` of an input by name; None if unknown.
        atom: returns the atom for a computed size that no polynomial expresses.
    """

    node: NodeProto
    ask: Callable[[Literal["shape", "rank", "elements"], str], Any]
    atom: Callable[[Hashable], Size]

    def attribute(self, name: str, default: Any = None) -> Any:
        """The value of an attribute."""
        return value_of(self.node, name, default)

    def has(self, index: int) -> bool:
        """Whether the node has an input."""
        return index < len(self.node.input) and self.node.input[index] != ""

    def _asked(self, question: Literal["shape", "rank", "elements"], index: int) -> Any:
        inputs = self.node.input
        name = inputs[index] if index < len(inputs) else ""
        answer = self.ask(question, name) if name else None
        if answer is None:
            raise UnknownError
        return answer

    def rank(self, index: int) -> int:
        """The rank of an input."""
        return self._asked("rank", index)  # type: ignore[no-any-return]

    def shape(self, index: int) -> tuple[Size, ...]:
        """The shape of an input."""
        return self._asked("shape", index)  # type: ignore[no-any-return]

    def elements(self, index: int) -> Elements:
        """The contents of an input."""
        return self._asked("elements", index)  # type: ignore[no-any-return]

    def elements_if_known(self, index: int) -> Elements | None:
        """The contents of an input; None if they are unknown."""
        return self.ask("elements", self.node.input[index]) if self.has(index) else None

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
        for name in self.node.input:
            rank = self.ask("rank", name) if name else None
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

    def axis(self, default: int = 0) -> int:
        """The axis in the attribute, counted from the front."""
        rank = self.rank(0)
        axis = int(self.attribute("axis", default))
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

    def part(self) -> slice:
        """The part of the shape that Shape returns."""
        return slice(self.attribute("start", 0), self.attribute("end"))
