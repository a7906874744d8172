"""Ranks that operators tell, followed back to inputs and constants one value at a time, without shape inference.

To infer the shapes of a whole model for the rank of one value takes longer than to convert it. What value_info states
counts for nothing here: exporters leave stale ranks there, and whoever asks is told of those that differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from reducelower.model.inference import ContradictionError
from reducelower.model.ranks import LENGTHS, RANKS, Inputs, NumberOf, followed
from reducelower.model.schemas import DEFAULT_DOMAINS

if TYPE_CHECKING:
    from onnx import NodeProto

__all__ = ["Followable", "Followed", "Ranks"]

_Graph = TypeVar("_Graph", bound="Followable")


class Followable(Protocol):
    """A graph whose ranks can be followed back."""

    @property
    def followed(self) -> Followed:
        """What was followed back of the values of this very graph, to be added to."""

    def home(self: _Graph, name: str) -> _Graph:
        """The graph that defines a value: this one or one around it."""

    def producer(self, name: str) -> NodeProto | None:
        """The node of this very graph that yields a value."""

    def given_shape(self, name: str) -> Sequence[int | None] | None:
        """The shape of a constant, or of what callers of the model hand to it; None for any other value."""

    def given_vector(self, name: str) -> Sequence[int] | None:
        """The value of a constant of this very graph that is a vector of integers; None for any other value."""

    def declared_rank(self, name: str) -> int | None:
        """The rank of a value that the user declared, or that is known from outside; None if none."""

    def stated_rank(self, name: str) -> int | None:
        """The rank that this very graph states of a value; None if none."""


Followed: TypeAlias = "dict[tuple[str, bool], int | None]"
"""The rank of each value by name, or its length where that was asked for; None where it is not told."""

_Place: TypeAlias = "tuple[Followable, str, bool]"
"""A value by name, with the graph that defines it, and whether its length is asked for rather than its rank."""


_DEEPEST = 50
"""How many values are followed by calls in calls; what lies deeper is looked at first, and then once more."""


class _FirstError(Exception):
    """Something has to be known first."""

    def __init__(self, place: _Place) -> None:
        super().__init__()
        self.place = place


class Ranks:
    """Ranks of values, and the lengths of vectors that decide ranks; each is found once."""

    def __init__(self, *, objects: bool = False) -> None:
        """Begin; whether to raise where a graph states another rank than operators tell."""
        self.were_followed = False
        """Whether any was asked for."""
        self._objects = objects
        self._depth = 0

    def rank(self, name: str, graph: Followable) -> int | None:
        """The rank of a value; None where operators, inputs and constants do not tell it.

        Raises:
            ContradictionError: what the graph states of it, or of what it is computed from, is another rank.
        """
        return self._find((graph.home(name), name, False))

    def short_shape(self, name: str, graph: Followable) -> tuple[int, ...] | None:
        """The shape of a scalar, or of a vector whose length is told; None for any other value."""
        rank = self.rank(name, graph)
        if rank != 1:
            return () if rank == 0 else None
        length = self._find((graph.home(name), name, True))
        return None if length is None else (length,)

    def _find(self, wanted: _Place) -> int | None:
        self.were_followed = True
        # A stack of our own: what one value is made of may be deeper than Python calls may be.
        waiting = [] if wanted[1:] in wanted[0].followed else [wanted]
        begun: set[_Place] = set()
        while waiting:
            place = waiting[-1]
            try:
                found = self._look(place)
            except _FirstError as first:
                if first.place not in begun:
                    begun.add(first.place)
                    waiting.append(first.place)
                    continue
                found = None  # a value that is made of itself has no rank
            place[0].followed[place[1:]] = found
            waiting.pop()
        return wanted[0].followed[wanted[1:]]

    def _look(self, place: _Place) -> int | None:
        home, name, is_length = place
        declared = None if is_length else home.declared_rank(name)
        if declared is not None:
            return declared
        given = home.given_shape(name)
        if given is not None:
            return len(given) if not is_length else given[0] if len(given) == 1 else None
        node = home.producer(name)
        if node is None or node.domain not in DEFAULT_DOMAINS or any(each.ref_attr_name for each in node.attribute):
            return None
        if node.output[0] != name and node.op_type != "Split":
            return None
        table: Mapping[str, NumberOf] = LENGTHS if is_length else RANKS
        inputs = Inputs(
            node,
            lambda given: self._of(home, given, is_length=False),
            lambda given: self._of(home, given, is_length=True),
            lambda given: home.home(given).given_vector(given),
        )
        found = followed(table.get(node.op_type), inputs)
        if self._objects and found is not None and not is_length and home.stated_rank(name) not in (None, found):
            raise ContradictionError(f"{name!r} is stated to be of another rank than it has")
        return found

    def _of(self, graph: Followable, name: str, *, is_length: bool) -> int | None:
        home, value = graph.home(name), (name, is_length)
        known = home.followed
        if value not in known:
            if self._depth == _DEEPEST:
                raise _FirstError((home, *value))
            known[value] = None  # of a value that is made of itself
            self._depth += 1
            try:
                known[value] = self._look((home, *value))
            except Exception:
                del known[value]
                raise
            finally:
                self._depth -= 1
        return known[value]
