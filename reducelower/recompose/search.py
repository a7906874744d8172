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

__all__ = ["HANDING_ON", "Axes", "Found", "search"]

HANDING_ON = frozenset({"Cast", "Identity"})
"""Operators that may return their input unchanged."""

_COMMUTATIVE = frozenset({"Add", "Mul", "Max", "Min"})

_OVER_SPACE = frozenset({"GlobalAveragePool"})
"""Operators that reduce over all axes after batch and channels."""


class Axes(NamedTuple):
    """The axes that a form reduces.

    Attributes:
        stated: the axes in the model; None if they are known at run time only.
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
class Found:
    """A match, or a partial match; values go by number, and nodes by the number of their output.

    Attributes:
        nodes: the nodes, including those that only pass on a value.
        values, attributes: the bindings of the form's variables.
        axes: the reduced axes; None if nothing is reduced.
        seen: the value of each part of the form, by the part's id.
        ways: the alternative chosen for each part, by the part's id; the same wherever the form uses the part.
        doubts: differences from the operator, as sentences.
        most_dimensions: the highest rank of a constant of one element.
    """

    nodes: frozenset[int] = frozenset()
    values: Mapping[str, int] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    axes: Axes | None = None
    seen: Mapping[int, int] = field(default_factory=dict)
    ways: Mapping[int, int] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()
    most_dimensions: int = 0


def search(wanted: Expression, view: View) -> Iterator[Found]:
    """Yield the matches of an expression that end in the view's value."""
    yield from _Search(view).value(wanted, OUTPUT, Found())


@dataclass(frozen=True)
class _Search:
    """Matches expressions; everything it learns comes from the view."""

    view: View

    def value(self, wanted: Expression, value: int, state: Found) -> Iterator[Found]:
        if isinstance(wanted, Variable):
            yield from self._bound(wanted.name, value, state)
        elif isinstance(wanted, Literal):
            yield from self._constant(self.view.dimensions_near(value, wanted.value), state)
        elif isinstance(wanted, Exact):
            yield from self._constant(self.view.dimensions_beyond(value, wanted), state)
        elif isinstance(wanted, AnyOf):
            taken = state.ways.get(id(wanted))
            for number, way in enumerate(wanted.alternatives):
                if taken is None:
                    yield from self.value(way, value, replace(state, ways={**state.ways, id(wanted): number}))
                elif taken == number:
                    yield from self.value(way, value, state)
        elif state.seen.get(id(wanted)) == value:
            yield state
        else:
            yield from self._application(wanted, value, state)

    def _bound(self, variable: str, value: int, state: Found) -> Iterator[Found]:
        known = state.values.get(variable)
        if known is None:
            yield replace(state, values={**state.values, variable: value})
        elif known == value or self._is_same_constant(known, value):
            yield state

    def _is_same_constant(self, value: int, other: int) -> bool:
        number = self.view.constant_number(value)
        return bool(number) and number == self.view.constant_number(other)

    def _constant(self, dimensions: int, state: Found) -> Iterator[Found]:
        if dimensions > state.most_dimensions:
            yield replace(state, most_dimensions=dimensions)
        elif dimensions >= 0:
            yield state

    def _application(self, wanted: Application, value: int, state: Found) -> Iterator[Found]:
        made = self.view.made(value)
        if made is None:
            return
        kind, operands = made
        is_meant = wanted.is_exact and wanted.op_type == kind.op_type
        if not is_meant and self._hands_on(kind, operands):
            yield from self.value(wanted, operands[0], replace(state, nodes=state.nodes | {value}))
            return
        if kind.op_type != wanted.op_type:
            return
        agreed = self._attributes(wanted, kind, operands, state)
        if agreed is None:
            return
        agreed = replace(agreed, nodes=agreed.nodes | {value}, seen={**agreed.seen, id(wanted): value})
        expected = wanted.operands
        if expected and isinstance(expected[-1], Variable) and expected[-1].name == AXES:
            reduced = self._reduced(wanted, kind, operands, agreed)
            if reduced is None:
                return
            agreed, expected, operands = reduced, expected[:-1], operands[:1]
        elif kind.op_type in _OVER_SPACE:
            rank = self.view.rank(operands[0])
            spatial = tuple(range(2, rank or 0))
            over = Axes(spatial, operands[0], None)
            over_space = self._agreed(agreed, over, is_exact=wanted.is_exact) if spatial else None
            if over_space is None:
                return
            agreed = over_space
        if len(operands) != len(expected):
            return
        orders: Iterable[Sequence[int]] = [operands]
        if kind.op_type in _COMMUTATIVE and len(operands) == 2 and operands[0] != operands[1]:
            orders = permutations(operands)
        for order in orders:
            yield from self._operands(expected, order, agreed)

    def _listed(self, value: int) -> tuple[int, ...] | None:
        """Constant axes from an input."""
        found = self.view.constant(value)
        return None if found is None or found.dtype != np.int64 or found.ndim > 1 else tuple(found.reshape(-1).tolist())

    def _operands(self, wanted: Sequence[Expression], values: Sequence[int], state: Found) -> Iterator[Found]:
        if not wanted:
            yield state
            return
        for first in self.value(wanted[0], values[0], state):
            yield from self._operands(wanted[1:], values[1:], first)

    def _hands_on(self, kind: Kind, operands: Sequence[int]) -> bool:
        """Whether a node returns its input: Identity, or a Cast to the input's own type."""
        if kind.op_type == "Cast":
            return self.view.element_type(operands[0]) == kind.attributes.get("to")
        return kind.op_type == "Identity"

    def _attributes(self, wanted: Application, kind: Kind, operands: Sequence[int], state: Found) -> Found | None:
        """The match extended by a node's attributes; None if they differ from the form's."""
        given = kind.attributes
        if wanted.is_exact and not given.keys() <= wanted.attributes.keys():
            return None
        for name, value in wanted.attributes.items():
            if isinstance(value, Variable):
                if value.name == AXES:
                    reduced = self._reduced(wanted, kind, operands[:1], state)
                    if reduced is None:
                        return None
                    state = reduced
                else:
                    state = replace(state, attributes={**state.attributes, value.name: given.get(name)})
            elif given.get(name) != value:
                if name != "keepdims" or wanted.is_exact:
                    return None
                state = replace(state, doubts=(*state.doubts, f"its {kind.op_type} drops the axes it reduces"))
        return state

    def _reduced(self, wanted: Application, kind: Kind, operands: Sequence[int], state: Found) -> Found | None:
        """The match extended by a node's axes; None if the form does not allow them."""
        given = kind.attributes
        is_input = len(operands) > 1 and operands[1] != ABSENT
        stated = self._listed(operands[1]) if is_input else tuple(given.get("axes", ()))
        if wanted.is_exact:
            if not is_input and "axes" not in given:
                return None
        elif stated is None or (not stated and given.get("noop_with_empty_axes")):
            return None
        axes = Axes(stated, operands[0], operands[1] if is_input else None)
        return self._agreed(state, axes, is_exact=wanted.is_exact)

    def _agreed(self, state: Found, axes: Axes, *, is_exact: bool) -> Found | None:
        """The match with the axes of one more node; None if they differ and the form allows no doubt."""
        known = state.axes
        if known is None:
            return replace(state, axes=axes)
        is_same = known.stated == axes.stated and (axes.stated is not None or known.value == axes.value)
        if is_same or (not is_exact and known.counted(self.view) == axes.counted(self.view)):
            return state
        return None if is_exact else replace(state, doubts=(*state.doubts, "its reductions go over different axes"))
