"""Mark values that may be part of a form, for all forms at once, with a bottom-up tree automaton over operators.

The state of a value has the parts of forms that it may be, judging by the operators before it, and whether it depends
on model inputs. A node's state depends only on its operator and the states of its inputs, so it is computed once for
all nodes with the same ones. Attributes, constants, and shared values are not considered; the search does that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TypeAlias

from reducelower.recompose.expressions import AXES, AnyOf, Application, Expression, Form, Variable

__all__ = ["COMMUTATIVE", "HANDING_ON", "Automaton", "State"]

COMMUTATIVE = frozenset({"Add", "Mul", "Max", "Min"})

HANDING_ON = frozenset({"Cast", "Identity"})
"""Operators that may return their input unchanged."""

_TOLD_BY_SHAPES = frozenset({"Shape", "Size"})

_Wanted: TypeAlias = "frozenset[int] | bool"
"""The parts allowed for an operand; or whether it may depend on model inputs."""


@dataclass(frozen=True, eq=False)
class State:
    """The state of a value, interned.

    Attributes:
        varies: whether it may depend on the model's inputs, other than by their shapes.
        parts: the parts of forms that it may be.
        ends: the groups of forms that may end with the node that computes it.
    """

    varies: bool = False
    parts: frozenset[int] = frozenset()
    ends: frozenset[int] = frozenset()


CONSTANT, VARYING = State(), State(varies=True)


class Automaton:
    """The parts of some forms, and the states of values in a graph."""

    def __init__(self, groups: Sequence[Iterable[Form]]) -> None:
        """Number the parts of the forms; each group is searched by itself."""
        self._numbers: dict[tuple[str, tuple[_Wanted, ...]], int] = {}
        self._parts: dict[str, list[tuple[int, tuple[_Wanted, ...]]]] = {}
        self._wholes: list[set[int]] = []
        for forms in groups:
            known: dict[int, _Wanted] = {}
            wholes = [self._wanted(form.result, known) for form in forms]
            self._wholes.append({part for whole in wholes if not isinstance(whole, bool) for part in whole})
        self._states: dict[tuple[bool, frozenset[int], frozenset[int]], State] = {}
        self._after: dict[tuple[str | State, ...], State] = {}

    def read(
        self,
        given: Iterable[str],
        op_types: Sequence[str],
        inputs: Iterable[Sequence[str]],
        outputs: Iterable[Sequence[str]],
    ) -> tuple[dict[str, State], Sequence[Sequence[int]]]:
        """Process nodes in order; return the state of each value, and per group the positions where a form may end."""
        states = dict.fromkeys(given, VARYING)
        ends: list[list[int]] = [[] for _ in self._wholes]
        after, state_of = self._after, states.get
        for index, (op_type, read, yielded) in enumerate(zip(op_types, inputs, outputs, strict=True)):
            read_states = [state_of(name, CONSTANT) for name in read]
            key: tuple[str | State, ...] = (op_type, *read_states)
            state = after.get(key)
            if state is None:
                state = after[key] = self._state(op_type, read_states)
            for name in yielded:
                states[name] = state
            for group in state.ends if yielded else ():
                ends[group].append(index)
        return states, ends

    def _state(self, op_type: str, read: Sequence[State]) -> State:
        own = {number for number, wanted in self._parts.get(op_type, ()) if _fits(op_type, wanted, read)}
        handed = read[0].parts if op_type in HANDING_ON and read else frozenset()
        # Only the type of CastLike's second operand matters.
        made_of = read[:1] if op_type == "CastLike" else read
        key = (
            op_type not in _TOLD_BY_SHAPES and any(state.varies for state in made_of),
            handed | own,
            frozenset(group for group, wholes in enumerate(self._wholes) if own & wholes),
        )
        if key not in self._states:
            self._states[key] = State(*key)
        return self._states[key]

    def _wanted(self, expression: Expression, known: dict[int, _Wanted]) -> _Wanted:
        """What an expression requires of a value."""
        if isinstance(expression, Application):
            if id(expression) not in known:
                operands = expression.operands
                if operands and isinstance(operands[-1], Variable) and operands[-1].name == AXES:
                    operands = operands[:1]  # axes may also be an attribute
                key = expression.op_type, tuple(self._wanted(operand, known) for operand in operands)
                if key not in self._numbers:
                    self._numbers[key] = len(self._numbers)
                    self._parts.setdefault(key[0], []).append((self._numbers[key], key[1]))
                known[id(expression)] = frozenset([self._numbers[key]])
            return known[id(expression)]
        if not isinstance(expression, AnyOf):
            return isinstance(expression, Variable)
        parts: frozenset[int] = frozenset()
        for way in expression.alternatives:
            wanted = self._wanted(way, known)
            if isinstance(wanted, bool):
                return True
            parts |= wanted
        return parts


def _fits(op_type: str, wanted: Sequence[_Wanted], read: Sequence[State]) -> bool:
    """Whether a node may be part of a form, judging by its inputs; axes may follow these."""
    orders: Iterable[Sequence[State]] = [read]
    if op_type in COMMUTATIVE and len(read) == len(wanted):
        orders = permutations(read)
    return len(read) >= len(wanted) and any(all(map(_is_it, wanted, order)) for order in orders)


def _is_it(wanted: _Wanted, state: State) -> bool:
    if isinstance(wanted, bool):
        return wanted or not state.varies
    return not wanted.isdisjoint(state.parts)
