"""A node with what is known about its inputs, as the rules of operators ask for it."""

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
    """Something that a rule needs is not known."""


@dataclass(slots=True)
class Call:
    """A node with what is known about its inputs, each asked when a rule needs it. Rules ask as if all were known.

    Attributes:
        node: the node.
        ask: answers ``shape``, ``rank`` or ``elements`` of an input by name; None if unknown.
        atom: gives the atom for a size that is computed in a way that polynomials cannot express.
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
        found = self.ask(question, name) if name else None
        if found is None:
            raise UnknownError
        return found

    def rank(self, index: int) -> int:
        """The rank of an input."""
        return self._asked("rank", index)  # type: ignore[no-any-return]

    def shape(self, index: int) -> tuple[Size, ...]:
        """The shape of an input."""
        return self._asked("shape", index)  # type: ignore[no-any-return]

    def elements(self, index: int) -> Elements:
        """The contents of an input."""
        return self._asked("elements", index)  # type: ignore[no-any-return]

    def shape_if_known(self, index: int) -> tuple[Size, ...] | None:
        """The shape of an input; None if it is unknown."""
        return self.ask("shape", self.node.input[index]) if self.has(index) else None

    def elements_if_known(self, index: int) -> Elements | None:
        """The contents of an input; None if they are unknown."""
        return self.ask("elements", self.node.input[index]) if self.has(index) else None

    def numbers(self, index: int) -> Sequence[int]:
        """The contents of an input, all of them numbers."""
        found = Known(elements=self.elements(index)).numbers
        if found is None:
            raise UnknownError
        return found

    def ints(self, name: str, index: int, default: Sequence[int] | None = None) -> Sequence[int]:
        """The integers of an attribute, or of an input if there is no such attribute."""
        found = self.attribute(name)
        if found is None and self.has(index):
            found = self.numbers(index)
        elif found is None:
            found = default
        if found is None:
            raise UnknownError
        return [int(each) for each in found]

    def ranks(self) -> list[int]:
        """The ranks of all inputs."""
        return [self.rank(index) for index in range(len(self.node.input))]

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
        """The number of axes that are removed; no axes at all may mean all of them."""
        count = self.count_of_axes()
        if not count:
            raise UnknownError
        return count

    def axis(self, default: int = 0) -> int:
        """The axis that the attribute names, from the front."""
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
        """Which sizes Shape yields."""
        return slice(self.attribute("start", 0), self.attribute("end"))
