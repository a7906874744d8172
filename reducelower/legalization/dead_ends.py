"""Nodes that came up in a search for a form that suits a runtime, and that no form suits.

The same few nodes come up again and again while one node of a model is rewritten this way and that: the magnitude of
its data, their sum. Whether anything suits them follows from how they are computed from the operands of that node, so
what was found out once is not searched for again.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnx import NodeProto

from reducelower.errors import RefusedError
from reducelower.model.graph import read_from_outside, subgraphs
from reducelower.scope.body import BodyScope, InnerScope
from reducelower.scope.values import value_key

if TYPE_CHECKING:
    from reducelower.scope.scope import Scope

__all__ = ["DeadEnds"]

_NO_STEPS_HELP = _NOWHERE = 1 << 30
"""More steps than any search takes, and than lie between two nodes."""


@dataclass
class Obstacles:
    """What a search that found nothing ran into, so that it may find something elsewhere.

    Attributes:
        steps: whether it ended for want of further steps.
        overflow: whether it might have found something if overflow were excused.
        way_back: place, counted from the node of the model, of the outermost node to which what was tried leads back.
    """

    steps: bool = False
    overflow: bool = False
    way_back: int = _NOWHERE

    def meet(self, other: Obstacles) -> None:
        """Add what a search that is part of this one ran into."""
        self.steps |= other.steps
        self.overflow |= other.overflow
        self.way_back = min(self.way_back, other.way_back)


@dataclass(frozen=True)
class DeadEnd:
    """What nothing suits: how many steps were tried, why not (None where there is nothing to try), and what was met."""

    steps: int
    refused: RefusedError | None
    met: Obstacles


class DeadEnds(dict[Hashable, DeadEnd]):
    """What nothing suits, by its expression, and by the way to write it."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def clear(self) -> None:
        """Forget all of it, for another node of the model."""
        super().clear()
        self._numbers.clear()

    def note(self, key: Hashable, steps: int, refused: RefusedError | None, met: Obstacles, *, depth: int) -> None:
        """Keep that a search of so many steps found nothing, at this place counted from the node of the model.

        One that neither ended for want of steps nor led back to a node before it finds nothing with more.
        """
        is_open = met.steps or met.way_back < depth
        # Without its traceback, which holds on to the model.
        why = None if refused is None else RefusedError(refused.reason, refused.hint)
        self[key] = DeadEnd(steps if is_open else _NO_STEPS_HELP, why, Obstacles(is_open, met.overflow))

    def known(self, key: Hashable, steps: int) -> DeadEnd | None:
        """What a search of so many steps runs into; None if it may find something."""
        found = self.get(key)
        return None if found is None or found.steps < steps else found

    def expression(self, node: NodeProto, scope: Scope) -> int:
        """What a node computes, in terms of the node of the model that it comes in place of; nothing is asked of that.

        Two nodes with one number are alike in all that can be told of them: element types, ranks, constants.
        """
        return self._expression(node, scope, {})

    def _expression(self, node: NodeProto, scope: Scope, seen: dict[tuple[int, str], Hashable]) -> int:
        """A number for it, as values are read several times over: written out, it would double with each of these."""
        attributes = tuple(sorted(attribute.SerializeToString(deterministic=True) for attribute in node.attribute))
        outside = sorted(read_from_outside(node).difference(node.input)) if any(True for _ in subgraphs(node)) else ()
        operands = tuple(self._value(name, scope, seen) for name in (*node.input, *outside))
        results = tuple("" if _is_new(name, scope) else name for name in node.output)
        return self._numbers.setdefault((node.op_type, attributes, operands, results), len(self._numbers))

    def _value(self, name: str, scope: Scope, seen: dict[tuple[int, str], Hashable]) -> Hashable:
        """The expression of a value; a name for what the node of the model reads, bytes for what its type tells."""
        while isinstance(scope, (BodyScope, InnerScope)):
            if isinstance(scope, BodyScope) and (made := scope.producer(name)) is not None:
                place = id(scope), name
                if place not in seen:
                    seen[place] = scope.opset, list(made.output).index(name), self._expression(made, scope, seen)
                return seen[place]
            if isinstance(scope, InnerScope) and scope.defines(name) and (found := scope.own_type(name)) is not None:
                return name, found.SerializeToString(deterministic=True)
            added = scope.node_scope.added.get(name)
            if added is not None:
                return added.written if added.value is None else value_key(added.value)
            scope = scope.parent
        return name


def _is_new(name: str, scope: Scope) -> bool:
    return isinstance(scope, (BodyScope, InnerScope)) and scope.node_scope.is_new(name)
