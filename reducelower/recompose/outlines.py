"""Which expressions of forms a value may be, by operators and constants alone.

What a node may be follows from its operator and from what its operands may be. So that is worked out once for each
such combination, and the search looks only where a form may be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import permutations

from reducelower.recompose.expressions import (
    COMMUTATIVE,
    PASSING_ON,
    AnyOf,
    Application,
    Exact,
    Form,
    Literal,
    Variable,
)
from reducelower.recompose.surroundings import Surroundings

__all__ = ["Outlines"]

Outlined = frozenset[int]
"""The outlines that a value may have."""

_ANYTHING = Outlined({Variable.outline})


class Outlines:
    """The outlines of some forms' expressions that each value of a graph may have."""

    def __init__(self, graph: Surroundings, forms: Iterable[Form]) -> None:
        """Look at the nodes, from the first to the last."""
        self._graph = graph
        parts = {outline: part for form in forms for outline, part in form.parts.items()}.values()
        self._constants = [part for part in parts if isinstance(part, Literal | Exact)]
        self._choices = [part for part in parts if isinstance(part, AnyOf)]
        self._applications: dict[str, list[Application]] = {name: [] for name in PASSING_ON}
        for part in parts:
            if isinstance(part, Application):
                self._applications.setdefault(part.op_type, []).append(part)
        self._of_combinations: dict[tuple[str, tuple[Outlined, ...]], Outlined] = {}
        self._of_constants: dict[int, Outlined] = {0: Outlined()}
        self._of_nodes: dict[str, Outlined] = {}
        self._of_values: dict[str, Outlined] = {}
        for op_type, inputs, outputs in zip(graph.op_types, graph.inputs, graph.outputs, strict=True):
            if outputs and op_type in self._applications:
                self._of_nodes[outputs[0]] = self._of_node(op_type, inputs)

    def of(self, value: str) -> Outlined:
        """The outlines that a value may have."""
        if value not in self._of_values:
            number = self._graph.constant_number(value)
            if number not in self._of_constants:
                self._of_constants[number] = self._of_constant(value)
            self._of_values[value] = self._of_nodes.get(value, _ANYTHING) | self._of_constants[number]
        return self._of_values[value]

    def _of_constant(self, value: str) -> Outlined:
        constant = self._graph.constant(value)
        assert constant is not None
        return self._with_choices(part.outline for part in self._constants if part.dimensions(constant) >= 0)

    def _of_node(self, op_type: str, inputs: Sequence[str]) -> Outlined:
        operands = tuple(map(self.of, inputs))
        combination = op_type, operands
        if combination not in self._of_combinations:
            applied = (part.outline for part in self._applications[op_type] if _may_apply(part, operands))
            passed_on = operands[0] if op_type in PASSING_ON and operands else _ANYTHING
            self._of_combinations[combination] = self._with_choices(applied) | passed_on
        return self._of_combinations[combination]

    def _with_choices(self, outlines: Iterable[int]) -> Outlined:
        """The outlines, and those of expressions that may be one of them."""
        found = Outlined(outlines)
        return found.union(choice.outline for choice in self._choices if not found.isdisjoint(choice.outlined))


def _may_apply(part: Application, operands: Sequence[Outlined]) -> bool:
    given = operands[: len(part.outlined)] if part.takes_axes else operands
    if len(given) != len(part.outlined):
        return False
    orders = permutations(given) if part.op_type in COMMUTATIVE else [given]
    return any(all(map(Outlined.__contains__, order, part.outlined)) for order in orders)
