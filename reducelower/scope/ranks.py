"""Find the rank of one value by following it back to inputs and constants, without shape inference.

Inferring a whole model for one rank takes longer than converting it. Stated types in value_info are not used, since
exporters leave stale ranks there; the caller can be told about those that differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from reducelower.model.inference import ContradictionError
from reducelower.model.inference.ranks import LENGTHS, RANKS, Inputs, NumberOf, evaluate_rule
from reducelower.model.schemas import DEFAULT_DOMAINS

if TYPE_CHECKING:
    from onnx import NodeProto

__all__ = ["HasRanks", "KnownRanks", "Ranks"]

_Graph = TypeVar("_Graph", bound="HasRanks")


class HasRanks(Protocol):
    """A graph in which ranks can be followed back."""

    @property
    def known_ranks(self) -> KnownRanks:
        """The cache for the values of this graph."""

    def home(self: _Graph, name: str) -> _Graph:
        """The graph that defines a value: this one or an enclosing one."""

    def producer(self, name: str) -> NodeProto | None:
        """The node of this graph that computes a value."""

    def given_shape(self, name: str) -> Sequence[int | None] | None:
        """The shape of a constant or of an input of the model; None for any other value."""

    def given_vector(self, name: str) -> Sequence[int] | None:
        """The value of a constant integer vector of this graph; None for any other value."""

    def declared_rank(self, name: str) -> int | None:
        """The rank of a value that the user declared or an enclosing scope knows; None if none."""

    def stated_rank(self, name: str) -> int | None:
        """The rank that this graph states for a value; None if none."""


KnownRanks: TypeAlias = "dict[tuple[str, bool], int | None]"
"""Rank, or length if that was asked for, of each value by name; None if it is not determined."""

_Place: TypeAlias = "tuple[HasRanks, str, bool]"
"""A name, the graph that defines it, and whether its length is wanted instead of its rank."""


_DEEPEST = 50
"""How many values are followed by recursion; a deeper one is computed first from an explicit stack."""


class _FirstError(Exception):
    """Another value has to be computed first."""

    def __init__(self, place: _Place) -> None:
        super().__init__()
        self.place = place


class Ranks:
    """Computes ranks, and lengths of the vectors that determine ranks; each once."""

    def __init__(self, *, objects: bool = False) -> None:
        """Set `objects` to raise if a graph states another rank than the one computed."""
        self.were_followed = False
        """Whether any was asked for."""
        self._objects = objects
        self._depth = 0

    def rank(self, name: str, graph: HasRanks) -> int | None:
        """The rank of a value; None if operators, inputs and constants do not determine it.

        Raises:
            ContradictionError: the stated rank of the value or of an ancestor differs.
        """
        return self._find((graph.home(name), name, False))

    def short_shape(self, name: str, graph: HasRanks) -> tuple[int, ...] | None:
        """The shape of a scalar, or of a vector of known length; None for any other value."""
        rank = self.rank(name, graph)
        if rank != 1:
            return () if rank == 0 else None
        length = self._find((graph.home(name), name, True))
        return None if length is None else (length,)

    def _find(self, wanted: _Place) -> int | None:
        self.were_followed = True
        # An explicit stack, since the graph may be deeper than Python's recursion limit.
        waiting = [] if wanted[1:] in wanted[0].known_ranks else [wanted]
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
                found = None  # a value in a cycle has no rank
            place[0].known_ranks[place[1:]] = found
            waiting.pop()
        return wanted[0].known_ranks[wanted[1:]]

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
        found = evaluate_rule(table.get(node.op_type), inputs)
        if self._objects and found is not None and not is_length and home.stated_rank(name) not in (None, found):
            raise ContradictionError(f"{name!r} is stated to be of another rank than it has")
        return found

    def _of(self, graph: HasRanks, name: str, *, is_length: bool) -> int | None:
        home, value = graph.home(name), (name, is_length)
        known = home.known_ranks
        if value not in known:
            if self._depth == _DEEPEST:
                raise _FirstError((home, *value))
            known[value] = None  # for a value in a cycle
            self._depth += 1
            try:
                known[value] = self._look((home, *value))
            except Exception:
                del known[value]
                raise
            finally:
                self._depth -= 1
        return known[value]
