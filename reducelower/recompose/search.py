"""Match forms in a graph, from the result of a form back to its inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from reducelower.recompose.expressions import AXES, AnyOf, Application, Exact, Expression, Literal, Variable
from reducelower.recompose.surroundings import Kind
from reducelower.recompose.view import ABSENT, OUTPUT, View

__all__ = ["PASSING_ON", "Axes", "Match", "search"]

PASSING_ON = frozenset({"Cast", "Identity"})
"""Operators that may only pass on their input."""

_COMMUTATIVE = frozenset({"Add", "Mul", "Max", "Min"})

_OVER_SPACE = frozenset({"GlobalAveragePool"})
"""Operators that reduce over all axes after batch and channels."""


class Axes(NamedTuple):
    """The axes that a match reduces.

    Attributes:
        stated: the axes in the model; None if they are known only at run time.
        data: the value to which the axes belong.
        value: the value that holds them, if they are an input.
    """

    stated: tuple[int, ...] | None
    data: int
    value: int | None

    def counted(self, view: View) -> tuple[int, ...]:
        """The axes from the front if the rank is known, and all axes if none are stated."""
        rank = view.rank(self.data)
        if rank is None:
            return self.stated or ()
        return tuple(sorted(axis % rank for axis in self.stated)) if self.stated and rank else tuple(range(rank))


@dataclass(frozen=True)
class Match:
    """A match of a form, or a part of one; values have numbers, and nodes that of their output.

    Attributes:
        nodes: the nodes, including those that only pass on a value.
        values, attributes: the bindings of the form's variables.
        axes: the reduced axes; None if nothing is reduced.
        seen: the value of each part of the form, by the part's id.
        choices: the alternative chosen for each part, by the part's id; the same wherever the form uses the part.
        doubts: differences from the operator, as sentences.
        most_dimensions: the highest rank of a constant of one element.
    """

    nodes: frozenset[int] = frozenset()
    values: Mapping[str, int] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    axes: Axes | None = None
    seen: Mapping[int, int] = field(default_factory=dict)
    choices: Mapping[int, int] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()
    most_dimensions: int = 0


def search(pattern: Expression, view: View) -> Iterator[Match]:
    """Yield the matches of an expression that end in the view's value."""
    yield from _Search(view).value(pattern, OUTPUT, Match())


@dataclass(frozen=True)
class _Search:
    """Matches expressions by asking the view."""

    view: View

    def value(self, pattern: Expression, value: int, state: Match) -> Iterator[Match]:
        if isinstance(pattern, Variable):
            yield from self._bound(pattern.name, value, state)
        elif isinstance(pattern, Literal):
            yield from self._constant(self.view.dimensions_near(value, pattern.value), state)
        elif isinstance(pattern, Exact):
            yield from self._constant(self.view.dimensions_beyond(value, pattern), state)
        elif isinstance(pattern, AnyOf):
            chosen = state.choices.get(id(pattern))
            for number, alternative in enumerate(pattern.alternatives):
                if chosen is None:
                    extended = replace(state, choices={**state.choices, id(pattern): number})
                    yield from self.value(alternative, value, extended)
                elif chosen == number:
                    yield from self.value(alternative, value, state)
        elif state.seen.get(id(pattern)) == value:
            yield state
        else:
            yield from self._application(pattern, value, state)

    def _bound(self, variable: str, value: int, state: Match) -> Iterator[Match]:
        bound = state.values.get(variable)
        if bound is None:
            yield replace(state, values={**state.values, variable: value})
        elif bound == value or self._is_same_constant(bound, value):
            yield state

    def _is_same_constant(self, value: int, other: int) -> bool:
        number = self.view.constant_number(value)
        return bool(number) and number == self.view.constant_number(other)

    def _constant(self, dimensions: int, state: Match) -> Iterator[Match]:
        if dimensions > state.most_dimensions:
            yield replace(state, most_dimensions=dimensions)
        elif dimensions >= 0:
            yield state

    def _application(self, pattern: Application, value: int, state: Match) -> Iterator[Match]:
        made = self.view.made(value)
        if made is None:
            return
        kind, operands = made
        is_meant = pattern.is_exact and pattern.op_type == kind.op_type
        if not is_meant and self._passes_on(kind, operands):
            yield from self.value(pattern, operands[0], replace(state, nodes=state.nodes | {value}))
            return
        if kind.op_type != pattern.op_type:
            return
        extended = self._attributes(pattern, kind, operands, state)
        if extended is None:
            return
        extended = replace(extended, nodes=extended.nodes | {value}, seen={**extended.seen, id(pattern): value})
        expected = pattern.operands
        if expected and isinstance(expected[-1], Variable) and expected[-1].name == AXES:
            reduced = self._reduced(pattern, kind, operands, extended)
            if reduced is None:
                return
            extended, expected, operands = reduced, expected[:-1], operands[:1]
        elif kind.op_type in _OVER_SPACE:
            axes = Axes(tuple(range(2, self.view.rank(operands[0]) or 0)), operands[0], None)
            reduced = self._agreed(extended, axes, is_exact=pattern.is_exact) if axes.stated else None
            if reduced is None:
                return
            extended = reduced
        if len(operands) != len(expected):
            return
        orders: Iterable[Sequence[int]] = [operands]
        if kind.op_type in _COMMUTATIVE and len(operands) == 2 and operands[0] != operands[1]:
            orders = permutations(operands)
        for order in orders:
            yield from self._operands(expected, order, extended)

    def _listed(self, value: int) -> tuple[int, ...] | None:
        """Constant axes from an input."""
        axes = self.view.constant(value)
        return None if axes is None or axes.dtype != np.int64 or axes.ndim > 1 else tuple(axes.reshape(-1).tolist())

    def _operands(self, pattern: Sequence[Expression], values: Sequence[int], state: Match) -> Iterator[Match]:
        if not pattern:
            yield state
            return
        for first in self.value(pattern[0], values[0], state):
            yield from self._operands(pattern[1:], values[1:], first)

    def _passes_on(self, kind: Kind, operands: Sequence[int]) -> bool:
        """Whether a node returns its input: Identity, or a Cast to the input's own type."""
        if kind.op_type == "Cast":
            return self.view.element_type(operands[0]) == kind.attributes.get("to")
        return kind.op_type == "Identity"

    def _attributes(self, pattern: Application, kind: Kind, operands: Sequence[int], state: Match) -> Match | None:
        """The match extended by a node's attributes; None if they differ from the form's."""
        stated = kind.attributes
        if pattern.is_exact and not stated.keys() <= pattern.attributes.keys():
            return None
        for name, value in pattern.attributes.items():
            if isinstance(value, Variable):
                if value.name == AXES:
                    reduced = self._reduced(pattern, kind, operands[:1], state)
                    if reduced is None:
                        return None
                    state = reduced
                else:
                    state = replace(state, attributes={**state.attributes, value.name: stated.get(name)})
            elif stated.get(name) != value:
                if name != "keepdims" or pattern.is_exact:
                    return None
                state = replace(state, doubts=(*state.doubts, f"its {kind.op_type} drops the axes it reduces"))
        return state

    def _reduced(self, pattern: Application, kind: Kind, operands: Sequence[int], state: Match) -> Match | None:
        """The match extended by a node's axes; None if the form does not allow them."""
        attributes = kind.attributes
        is_input = len(operands) > 1 and operands[1] != ABSENT
        stated = self._listed(operands[1]) if is_input else tuple(attributes.get("axes", ()))
        if pattern.is_exact:
            if not is_input and "axes" not in attributes:
                return None
        elif stated is None or (not stated and attributes.get("noop_with_empty_axes")):
            return None
        axes = Axes(stated, operands[0], operands[1] if is_input else None)
        return self._agreed(state, axes, is_exact=pattern.is_exact)

    def _agreed(self, state: Match, axes: Axes, *, is_exact: bool) -> Match | None:
        """The match with the axes of one more node; None if they differ and the form allows no doubt."""
        first = state.axes
        if first is None:
            return replace(state, axes=axes)
        is_same = first.stated == axes.stated and (axes.stated is not None or first.value == axes.value)
        if is_same or (not is_exact and first.counted(self.view) == axes.counted(self.view)):
            return state
        return None if is_exact else replace(state, doubts=(*state.doubts, "its reductions go over different axes"))
