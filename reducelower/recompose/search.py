"""Match forms in a graph, from the result of a form back to its inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from reducelower.recompose.expressions import (
    AXES,
    COMMUTATIVE,
    NOOP,
    PASSING_ON,
    AnyOf,
    Application,
    Exact,
    Expression,
    Form,
    Literal,
    Variable,
)
from reducelower.recompose.surroundings import Made, Surroundings

__all__ = ["Axes", "Match", "Search"]

_OVER_SPACE = frozenset({"GlobalAveragePool"})
"""Operators that reduce over all axes after batch and channels."""


class Axes(NamedTuple):
    """The axes that a match reduces.

    Attributes:
        stated: the axes in the model, all if empty; None if they are known only at run time.
        data: the value to which the axes belong.
        value: the value that holds them, if they are an input.
    """

    stated: tuple[int, ...] | None
    data: str
    value: str | None

    def counted(self, graph: Surroundings) -> tuple[int, ...]:
        """The axes from the front if the rank is known, and all axes if none are stated."""
        rank = graph.rank(self.data)
        if rank is None:
            return self.stated or ()
        return tuple(sorted(axis % rank for axis in self.stated)) if self.stated and rank else tuple(range(rank))

    def is_same(self, other: Axes, graph: Surroundings) -> bool:
        """Whether these are the same axes."""
        if self.stated is None or other.stated is None:
            return self.stated is other.stated and self.value == other.value
        return self.stated == other.stated or self.counted(graph) == other.counted(graph)


class Match(NamedTuple):
    """A match of a form, or a part of one.

    Attributes:
        nodes: the outputs of its nodes, including those that only pass on a value.
        values, attributes: the bindings of the form's variables.
        axes: the reduced axes; None if nothing is reduced.
        seen: the value of each part of the form, by the part's id.
        most_dimensions: the highest rank of a constant of one element.
    """

    nodes: frozenset[str]
    values: Mapping[str, str]
    attributes: Mapping[str, Any]
    seen: Mapping[int, str]
    axes: Axes | None = None
    most_dimensions: int = 0


class Search:
    """The search for forms in one graph."""

    def __init__(self, graph: Surroundings) -> None:
        self._graph = graph

    def matches(self, form: Form, output: str) -> Iterator[Match]:
        """The matches of a form that compute this value."""
        return self._value(form.result, output, Match(frozenset(), {}, {}, {}))

    def may_match(self, pattern: Expression, value: str) -> bool:
        """Whether a value is computed by the operator of a pattern, or is a constant as the pattern is."""
        if isinstance(pattern, Variable):
            return True
        if isinstance(pattern, Literal | Exact):
            return self._graph.stored(value) is not None
        if isinstance(pattern, AnyOf):
            return any(self.may_match(way, value) for way in pattern.alternatives)
        made = self._graph.made(value)
        return made is not None and (made.op_type == pattern.op_type or made.op_type in PASSING_ON)

    def _value(self, pattern: Expression, value: str, state: Match) -> Iterator[Match]:
        if isinstance(pattern, Variable):
            yield from self._bound(pattern.name, value, state)
        elif isinstance(pattern, Literal | Exact):
            yield from self._constant(pattern, value, state)
        elif isinstance(pattern, AnyOf):
            for way in pattern.alternatives:
                if self.may_match(way, value):
                    yield from self._value(way, value, state)
        elif state.seen.get(id(pattern)) == value:
            yield state
        elif self.may_match(pattern, value):
            yield from self._application(pattern, value, state)

    def _bound(self, variable: str, value: str, state: Match) -> Iterator[Match]:
        bound = state.values.get(variable)
        if bound is None:
            yield state._replace(values={**state.values, variable: value})
        elif bound == value or self._is_same_constant(bound, value):
            yield state

    def _is_same_constant(self, value: str, other: str) -> bool:
        constant = self._graph.stored(value)
        return constant is not None and constant is self._graph.stored(other)

    def _constant(self, pattern: Literal | Exact, value: str, state: Match) -> Iterator[Match]:
        constant = self._graph.constant(value)
        dimensions = -1 if constant is None else pattern.dimensions(constant)
        if dimensions > state.most_dimensions:
            yield state._replace(most_dimensions=dimensions)
        elif dimensions >= 0:
            yield state

    def _application(self, pattern: Application, value: str, state: Match) -> Iterator[Match]:
        made = self._graph.made(value)
        if made is None:
            return
        with_node = state._replace(nodes=state.nodes | {value})
        if self._passes_on(made):
            yield from self._value(pattern, made.operands[0], with_node)
        if made.op_type != pattern.op_type:
            return
        seen = with_node._replace(seen={**state.seen, id(pattern): value})
        extended = self._with_axes(pattern, made, self._with_attributes(pattern, made, seen))
        expected, operands = pattern.operands, made.operands
        if pattern.takes_axes:
            expected, operands = expected[:-1], operands[:1]
        if extended is not None and len(operands) == len(expected):
            for order in _orders(made.op_type, operands):
                if all(map(self.may_match, expected, order)):
                    yield from self._operands(expected, order, extended)

    def _operands(self, pattern: Sequence[Expression], values: Sequence[str], state: Match) -> Iterator[Match]:
        if not pattern:
            yield state
            return
        for first in self._value(pattern[0], values[0], state):
            yield from self._operands(pattern[1:], values[1:], first)

    def _passes_on(self, made: Made) -> bool:
        """Whether a node returns its input: Identity, or a Cast to the input's own type."""
        if made.op_type == "Cast":
            return self._graph.element_type(made.operands[0]) == made.attributes.get("to")
        return made.op_type == "Identity"

    def _with_attributes(self, pattern: Application, made: Made, state: Match) -> Match | None:
        """The match extended by a node's attributes, except the axes; None if they differ from the form's."""
        for name, value in pattern.attributes.items():
            stated = made.attributes.get(name)
            if isinstance(value, Variable) and value.name == AXES:
                continue
            if isinstance(value, Variable):
                if state.attributes.get(value.name, stated) != stated:
                    return None
                state = state._replace(attributes={**state.attributes, value.name: stated})
            elif stated != value:
                return None
        return state

    def _with_axes(self, pattern: Application, made: Made, state: Match | None) -> Match | None:
        """The match extended by the axes of a node that has some; None if the form does not allow them."""
        if state is None:
            return None
        if made.op_type in _OVER_SPACE:
            axes = Axes(tuple(range(2, self._graph.rank(made.operands[0]) or 0)), made.operands[0], None)
            return self._agreed(state, axes) if axes.stated else None
        if not pattern.takes_axes and not isinstance(pattern.attributes.get(AXES), Variable):
            return state
        value = made.operands[1] if pattern.takes_axes and len(made.operands) > 1 else ""
        stated = self._listed(value) if value else tuple(made.attributes.get(AXES, ()))
        if not stated and made.attributes.get(NOOP):
            return None
        return self._agreed(state, Axes(stated, made.operands[0], value or None))

    def _listed(self, value: str) -> tuple[int, ...] | None:
        """Constant axes from an input."""
        axes = self._graph.constant(value)
        return None if axes is None or axes.dtype != np.int64 or axes.ndim > 1 else tuple(axes.reshape(-1).tolist())

    def _agreed(self, state: Match, axes: Axes) -> Match | None:
        """The match with the axes of one more node; None if they are other ones."""
        if state.axes is None:
            return state._replace(axes=axes)
        return state if state.axes.is_same(axes, self._graph) else None


def _orders(op_type: str, operands: Sequence[str]) -> Iterable[Sequence[str]]:
    """The orders in which operands may be taken."""
    if op_type in COMMUTATIVE and len(operands) == 2 and operands[0] != operands[1]:
        return permutations(operands)
    return [operands]
