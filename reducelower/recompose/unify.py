"""Finding forms in a graph: from the value that a form yields back to the values it is made of.

Thousands of places in a model are alike. What was found at one holds at the next if nothing that was asked about the
first would be answered otherwise for the second. So values go by number, in the order in which they come up, every
question is kept with its answer, and the next place follows the questions of those before it as long as its answers are
theirs. A place that gives an answer nobody gave before is searched, and adds a branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, permutations
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from reducelower.recompose.expressions import AXES, AnyOf, Application, Exact, Expression, Form, Literal, Variable
from reducelower.recompose.expressions import is_near as _is_near
from reducelower.recompose.surroundings import Kind, Surroundings
from reducelower.scope.graph import GraphScope

__all__ = ["Axes", "Finder", "Found"]

_OVER_SPACE = frozenset({"GlobalAveragePool"})
"""Operators that reduce over all axes behind batch and channels."""

_COMMUTATIVE = frozenset({"Add", "Mul", "Max", "Min"})


class Axes(NamedTuple):
    """What a form reduces over.

    Attributes:
        stated: the axes as the model has them; None where they are known at run time only.
        counted: the same from the front where the rank is known, all of them where none are stated.
        value: the value that holds them, where they are an input: its number, and its name in a place that was found.
    """

    stated: tuple[int, ...] | None
    counted: tuple[int, ...]
    value: int | str | None


@dataclass(frozen=True)
class Found:
    """Where a form was found.

    Attributes:
        form: the form.
        nodes: positions of the nodes, those included that only hand a value on.
        values: the name of the value that each variable is.
        attributes: the attribute that each variable is.
        axes: what it reduces over; None where it does not.
        doubts: what differs from the operator's form, as sentences.
        most_dimensions: the most dimensions that a constant of one element has.
    """

    form: Form
    nodes: frozenset[int]
    values: Mapping[str, str]
    attributes: Mapping[str, Any]
    axes: Axes | None
    doubts: tuple[str, ...]
    most_dimensions: int


@dataclass(frozen=True)
class _State:
    """A part of a form that was found; values go by number, and nodes by the number of what they yield."""

    nodes: frozenset[int] = frozenset()
    values: Mapping[str, int] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    axes: Axes | None = None
    seen: Mapping[int, int] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()
    most_dimensions: int = 0


class _Place:
    """The values behind one value, by number, and what was asked about them."""

    def __init__(self, output: str, surroundings: Surroundings, scope: GraphScope) -> None:
        self.names = [output]
        self.numbers = {output: 0, "": -1}  # an operand that is absent is -1
        self.surroundings = surroundings
        self.scope = scope
        self.answers: dict[_Question, Any] = {}

    def ask(self, answer: _Answering, value: int, argument: Any = None) -> Any:
        """The answer to a question about a value, which is noted."""
        question = answer, value, argument
        if question not in self.answers:
            self.answers[question] = answer(self, value, argument)
        return self.answers[question]


_Answering: TypeAlias = Callable[[_Place, int, Any], Any]
_Question: TypeAlias = tuple[_Answering, int, Any]


# What may be asked; every answer can be compared.


def _made(place: _Place, value: int, _: None) -> tuple[Any, ...] | None:
    """What kind of node yields a value, and what it reads; None where no node of this graph does."""
    names, numbers, surroundings = place.names, place.numbers, place.surroundings
    index = surroundings.producers.get(names[value])
    if index is None:
        return None
    answer: list[Any] = [surroundings.kind(index)]
    for name in surroundings.inputs[index]:
        number = numbers.get(name)
        if number is None:
            number = numbers[name] = len(names)
            names.append(name)
        answer.append(number)
    return tuple(answer)


def _near(place: _Place, value: int, wanted: float) -> int:
    """How many dimensions a constant of one element has that is this number, or near it; -1 where it is none."""
    found = place.scope.ground.values[place.surroundings.constant_number(place.names[value])]
    is_it = found is not None and found.size == 1 and _is_near(float(found.reshape(-1)[0]), wanted, found.dtype)
    return found.ndim if found is not None and is_it else -1


def _same(place: _Place, value: int, wanted: Exact) -> int:
    """How many dimensions a constant of this very value has beyond those it should; -1 where it is none."""
    found, known = place.scope.ground.values[place.surroundings.constant_number(place.names[value])], wanted.value
    if found is None or found.dtype != known.dtype or found.tobytes() != known.tobytes():
        return -1
    return 0 if found.shape == known.shape else found.ndim if found.size == 1 and not known.ndim else -1


def _constant(place: _Place, value: int, _: None) -> int:
    return place.surroundings.constant_number(place.names[value])


def _listed(place: _Place, value: int, _: None) -> tuple[int, ...] | None:
    """Axes that are an input, where they are constant."""
    found = place.scope.ground.values[place.surroundings.constant_number(place.names[value])]
    return None if found is None or found.dtype != np.int64 or found.ndim > 1 else tuple(found.reshape(-1).tolist())


def _element_type(place: _Place, value: int, _: None) -> int | None:
    return place.scope.element_type(place.names[value])


def _rank(place: _Place, value: int, _: None) -> int | None:
    return place.surroundings.rank(place.names[value])


class _Branch:
    """A question, and where each answer leads: to the next one, or to the forms that were found."""

    __slots__ = ("answer", "answers", "argument", "value")

    def __init__(self, question: _Question) -> None:
        self.answer, self.value, self.argument = question
        self.answers: dict[Any, _Branch | _Forms] = {}


_Forms: TypeAlias = "list[tuple[Form, _State]]"


class Finder:
    """Finds some forms in graphs of one opset version."""

    def __init__(self, forms: Iterable[Form]) -> None:
        """Take the forms that are looked for."""
        self._heads: dict[str, list[tuple[Form, _Head]]] = {}
        for form in forms:
            for head in _heads(form.result):
                self._heads.setdefault(head.op_type, []).append((form, head))
        self._may_be: dict[tuple[str, ...], bool] = {}
        self._first = _Branch((_made, 0, None))

    def ends(self, surroundings: Surroundings) -> Iterator[int]:
        """Positions of the nodes that may yield the result of a form, the last first."""
        for index in reversed([at for at, op_type in enumerate(surroundings.op_types) if op_type in self._heads]):
            around = surroundings.operators_around(index)
            if around not in self._may_be:
                op_type, *operands = around
                self._may_be[around] = any(head.fits(operands) for _, head in self._heads[op_type])
            if self._may_be[around]:
                yield index

    def found_at(self, index: int, surroundings: Surroundings, scope: GraphScope) -> list[Found]:
        """The forms that what a node yields has."""
        end = surroundings.kind(index).op_type
        if not end:
            return []
        (output,) = surroundings.nodes[index].output
        place = _Place(output, surroundings, scope)
        branch: _Branch | _Forms | None = self._first
        while branch.__class__ is _Branch:
            assert isinstance(branch, _Branch)
            branch = branch.answers.get(branch.answer(place, branch.value, branch.argument))
        if branch is None:
            place = _Place(output, surroundings, scope)
            branch = self._search(place, end)
        assert isinstance(branch, list)
        return [_in_names(form, state, place) for form, state in branch]

    def _search(self, place: _Place, end: str) -> _Forms:
        place.ask(_made, 0)
        search = _Search(place)
        forms = dict.fromkeys(form for form, _ in self._heads[end])
        found = [(form, state) for form in forms for state in search.value(form.result, 0, _State())]
        asked = list(place.answers.items())
        branch = self._first
        for (_, answer), (question, _) in pairwise(asked):
            following = branch.answers.setdefault(answer, _Branch(question))
            assert isinstance(following, _Branch)
            branch = following
        branch.answers[asked[-1][1]] = found
        return found


@dataclass(frozen=True)
class _Head:
    """How a form ends.

    Attributes:
        op_type: the operator of the node that yields its result.
        operands: what operators may yield each operand; None for any.
    """

    op_type: str
    operands: tuple[frozenset[str] | None, ...]

    def fits(self, given: Sequence[str]) -> bool:
        """Whether the operands of a node may be those, by the operators that yield them."""
        orders: Iterable[Sequence[str]] = permutations(given) if self.op_type in _COMMUTATIVE else [given]
        return any(
            all(wanted is None or op_type in wanted for wanted, op_type in zip(self.operands, order, strict=False))
            for order in orders
        )


def _heads(expression: Expression) -> Iterator[_Head]:
    if isinstance(expression, AnyOf):
        for way in expression.alternatives:
            yield from _heads(way)
    elif isinstance(expression, Application):
        yield _Head(expression.op_type, tuple(map(_operators, expression.operands)))


def _operators(expression: Expression) -> frozenset[str] | None:
    """What operators may yield what an expression says; None where any may."""
    if isinstance(expression, Application):
        return frozenset({expression.op_type, *_HANDING_ON})
    if not isinstance(expression, AnyOf):
        return None
    ways = list(map(_operators, expression.alternatives))
    return None if None in ways else frozenset().union(*(way for way in ways if way is not None))


_HANDING_ON = ("Cast", "Identity")


def _in_names(form: Form, state: _State, place: _Place) -> Found:
    names, producers = place.names, place.surroundings.producers
    axes = state.axes
    if axes is not None and isinstance(axes.value, int):
        axes = axes._replace(value=names[axes.value])
    return Found(
        form,
        frozenset([producers[names[value]] for value in state.nodes]),
        {variable: names[value] for variable, value in state.values.items()},
        state.attributes,
        axes,
        state.doubts,
        state.most_dimensions,
    )


@dataclass(frozen=True)
class _Search:
    """The ways in which values are what expressions say; it learns what it asks the place for, and nothing else."""

    place: _Place

    def value(self, wanted: Expression, value: int, state: _State) -> Iterator[_State]:
        if isinstance(wanted, Variable):
            yield from self._bound(wanted.name, value, state)
        elif isinstance(wanted, Literal):
            yield from self._constant(self.place.ask(_near, value, wanted.value), state)
        elif isinstance(wanted, Exact):
            yield from self._constant(self.place.ask(_same, value, wanted), state)
        elif isinstance(wanted, AnyOf):
            for way in wanted.alternatives:
                yield from self.value(way, value, state)
        elif state.seen.get(id(wanted)) == value:
            yield state
        else:
            yield from self._application(wanted, value, state)

    def _bound(self, variable: str, value: int, state: _State) -> Iterator[_State]:
        known = state.values.get(variable)
        if known is None:
            yield replace(state, values={**state.values, variable: value})
        elif known == value or self._is_same_constant(known, value):
            yield state

    def _is_same_constant(self, value: int, other: int) -> bool:
        number = self.place.ask(_constant, value)
        return bool(number) and number == self.place.ask(_constant, other)

    def _constant(self, dimensions: int, state: _State) -> Iterator[_State]:
        if dimensions > state.most_dimensions:
            yield replace(state, most_dimensions=dimensions)
        elif dimensions >= 0:
            yield state

    def _application(self, wanted: Application, value: int, state: _State) -> Iterator[_State]:
        made = self.place.ask(_made, value)
        if made is None:
            return
        kind, *operands = made
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
            rank = self.place.ask(_rank, operands[0])
            spatial = tuple(range(2, rank or 0))
            over_space = _agreed(agreed, Axes(spatial, spatial, None), is_exact=wanted.is_exact) if spatial else None
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

    def _operands(self, wanted: Sequence[Expression], values: Sequence[int], state: _State) -> Iterator[_State]:
        if not wanted:
            yield state
            return
        for first in self.value(wanted[0], values[0], state):
            yield from self._operands(wanted[1:], values[1:], first)

    def _hands_on(self, kind: Kind, operands: Sequence[int]) -> bool:
        """Whether a node yields what it reads: Identity, or a Cast to the type that its input has."""
        if kind.op_type == "Cast":
            return bool(self.place.ask(_element_type, operands[0]) == kind.attributes.get("to"))
        return kind.op_type == "Identity"

    def _attributes(self, wanted: Application, kind: Kind, operands: Sequence[int], state: _State) -> _State | None:
        """The state with what a node's attributes tell; None where they are not those of the form."""
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

    def _reduced(self, wanted: Application, kind: Kind, operands: Sequence[int], state: _State) -> _State | None:
        """The state with the axes of a node; None where they are not those that the form may have."""
        given = kind.attributes
        is_input = len(operands) > 1 and operands[1] >= 0
        if not is_input:
            stated = tuple(given["axes"]) if "axes" in given else ()
        else:
            stated = self.place.ask(_listed, operands[1])
        if wanted.is_exact:
            if not is_input and "axes" not in given:
                return None
        elif stated is None or (not stated and given.get("noop_with_empty_axes")):
            return None
        rank = self.place.ask(_rank, operands[0])
        counted = stated or ()
        if rank is not None:
            counted = tuple(sorted(axis % rank for axis in stated)) if stated and rank else tuple(range(rank))
        axes = Axes(stated, counted, operands[1] if is_input else None)
        return _agreed(state, axes, is_exact=wanted.is_exact)


def _agreed(state: _State, axes: Axes, *, is_exact: bool) -> _State | None:
    """The state with the axes of one more node; None where they are others, and the form may not be in doubt."""
    known = state.axes
    if known is None:
        return replace(state, axes=axes)
    if is_exact:
        is_same = known.stated == axes.stated and (axes.stated is not None or known.value == axes.value)
        return state if is_same else None
    if known.counted != axes.counted:
        return replace(state, doubts=(*state.doubts, "its reductions go over different axes"))
    return state
