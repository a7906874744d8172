"""Memory of failed searches: nodes for which no form suits the runtime.

While alternatives for one node are tried, the same few nodes come up repeatedly, such as the magnitude of its data or
the sum of these. Whether a form suits them depends only on how they are computed from the operands of that node, so a
failed search need not be repeated.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnx import NodeProto

from reducelower.errors import RefusedError
from reducelower.model.graph import read_from_outside, subgraphs
from reducelower.scope.body import BodyScope
from reducelower.scope.values import value_key

if TYPE_CHECKING:
    from reducelower.scope.scope import Scope

__all__ = ["FailedSearches"]

_NO_STEPS_HELP = _NOWHERE = 1 << 30
"""Larger than the steps of any search, and than the distance between any two nodes."""


@dataclass
class Obstacles:
    """The limits that a failed search met; without them it might succeed.

    Attributes:
        steps: whether it ran out of steps.
        overflow: whether it might have succeeded if overflow were accepted.
        way_back: distance from the model's node to the outermost node that an alternative led back to.
    """

    steps: bool = False
    overflow: bool = False
    way_back: int = _NOWHERE

    def merge(self, other: Obstacles) -> None:
        """Add the obstacles of a nested search."""
        self.steps |= other.steps
        self.overflow |= other.overflow
        self.way_back = min(self.way_back, other.way_back)


@dataclass(frozen=True)
class FailedSearch:
    """A failed search: the number of steps, the refusal (None if there was no alternative), and its obstacles."""

    steps: int
    refused: RefusedError | None
    met: Obstacles


class FailedSearches(dict[Hashable, FailedSearch]):
    """Failed searches by expression, and by way to write it."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def note(self, key: Hashable, steps: int, refused: RefusedError | None, met: Obstacles, *, depth: int) -> None:
        """Record that a search with this many steps failed at a distance of `depth` from the model's node.

        If it neither ran out of steps nor led back to an outer node, more steps would not help either.
        """
        is_open = met.steps or met.way_back < depth
        # The traceback would keep the model alive.
        why = None if refused is None else RefusedError(refused.reason, refused.hint)
        self[key] = FailedSearch(steps if is_open else _NO_STEPS_HELP, why, Obstacles(is_open, met.overflow))

    def known(self, key: Hashable, steps: int) -> FailedSearch | None:
        """The recorded failure of a search with this many steps; None if it may succeed."""
        found = self.get(key)
        return None if found is None or found.steps < steps else found

    def expression(self, node: NodeProto, scope: Scope) -> int:
        """A number for the computation of a node from the operands of the model's node.

        Two nodes with the same number agree in everything that can be known: element types, ranks, constants. No
        question is asked about the model's node.
        """
        return self._expression(node, scope, {})

    def _expression(self, node: NodeProto, scope: Scope, seen: dict[tuple[int, str], Hashable]) -> int:
        """The number. Expressions are numbered because a value that is read repeatedly would double their size each
        time."""
        attributes = tuple(sorted(attribute.SerializeToString(deterministic=True) for attribute in node.attribute))
        outside = sorted(read_from_outside(node).difference(node.input)) if any(True for _ in subgraphs(node)) else ()
        operands = tuple(self._value(name, scope, seen) for name in (*node.input, *outside))
        results = tuple("" if _is_new(name, scope) else name for name in node.output)
        return self._numbers.setdefault((node.op_type, attributes, operands, results), len(self._numbers))

    def _value(self, name: str, scope: Scope, seen: dict[tuple[int, str], Hashable]) -> Hashable:
        """The expression of a value; a name for an operand of the model's node, bytes for a type."""
        while isinstance(scope, BodyScope):
            if (made := scope.producer(name)) is not None:
                place = id(scope), name
                if place not in seen:
                    seen[place] = scope.opset, list(made.output).index(name), self._expression(made, scope, seen)
                return seen[place]
            if name in scope.stated:
                return name, scope.stated[name].SerializeToString(deterministic=True)
            added = scope.node_scope.added.get(name)
            if added is not None:
                return value_key(added.value)
            scope = scope.parent
        return name


def _is_new(name: str, scope: Scope) -> bool:
    return isinstance(scope, BodyScope) and scope.node_scope.is_new(name)
