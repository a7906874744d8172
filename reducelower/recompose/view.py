"""The ancestors of one value, by number, with a record of the questions about them.

Thousands of places in a model are alike. So values are numbered in order of appearance, and every question is recorded
with its answer, so that results can be reused; see `legalization/memo`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from reducelower.legalization.memo import Branch, learn
from reducelower.model.numbers import Array
from reducelower.recompose.expressions import Exact, is_near
from reducelower.recompose.surroundings import Kind, Surroundings
from reducelower.scope.blanks import blank
from reducelower.scope.node import Question

__all__ = ["ABSENT", "OUTPUT", "Memoized", "View"]

OUTPUT, ABSENT = 0, 1
"""The numbers of the value at which the search starts, and of an absent operand."""

_BLANKS: list[str] = []
"""A cache of blanks, by number."""


class View:
    """The ancestors of a value by number; every question is recorded."""

    def __init__(self, output: str, surroundings: Surroundings) -> None:
        self.names = [output, ""]
        self.numbers = {output: OUTPUT, "": ABSENT}
        self.surroundings = surroundings
        self.answers: dict[Question, Any] = {}

    @property
    def blanks(self) -> dict[str, str]:
        """The names of the values by their blanks."""
        while len(_BLANKS) < len(self.names):
            _BLANKS.append(blank(len(_BLANKS)))
        return dict(zip(_BLANKS, self.names, strict=False))

    def position(self, value: int) -> int:
        """The position of the node that computes a value."""
        return self.surroundings.producers[self.names[value]]

    def _ask(self, name: str, value: int, argument: Hashable = None) -> Any:
        question = Question(name, value, argument)
        if question not in self.answers:
            answer = _ANSWERS[name]
            self.answers[question] = answer(self, value) if argument is None else answer(self, value, argument)
        return self.answers[question]

    def made(self, value: int) -> tuple[Kind, list[int]] | None:
        """The kind of node that computes a value, and its inputs; None if no node of this graph does."""
        node = self._ask("made", value)
        return None if node is None else (node[0], list(node[1:]))

    def dimensions_near(self, value: int, expected: float) -> int:
        """The rank of a constant of one element near this number; -1 if it is not one."""
        return self._ask("near", value, expected)  # type: ignore[no-any-return]

    def dimensions_beyond(self, value: int, expected: Exact) -> int:
        """By how much the rank of a constant of exactly this value exceeds the expected one; -1 if it is not one."""
        return self._ask("same", value, expected)  # type: ignore[no-any-return]

    def constant_number(self, value: int) -> int:
        """The number of a constant's value; 0 if it is not constant."""
        return self._ask("constant_number", value)  # type: ignore[no-any-return]

    def constant(self, value: int | None) -> Array | None:
        """The value of a constant; None if it is not constant or the operand is absent."""
        return None if value is None else self.surroundings.constants[self.constant_number(value)]

    def element_type(self, value: int) -> int | None:
        """The element type of a value; None if unknown."""
        return self._ask("element_type", value)  # type: ignore[no-any-return]

    def rank(self, value: int) -> int | None:
        """The rank of a value; None if unknown."""
        return self._ask("rank", value)  # type: ignore[no-any-return]

    def shape(self, value: int) -> tuple[int | None, ...] | None:
        """The shape of a value, with None for unknown sizes; None if the rank is unknown."""
        return self._ask("shape", value)  # type: ignore[no-any-return]


# The questions; every answer can be compared.


def _made(view: View, value: int) -> tuple[Any, ...] | None:
    names, numbers, surroundings = view.names, view.numbers, view.surroundings
    index = surroundings.producers.get(names[value])
    if index is None:
        return None
    answer: list[Any] = [surroundings.kind(index)]
    for name in surroundings.inputs[index]:
        number = numbers.setdefault(name, len(names))
        if number == len(names):
            names.append(name)
        answer.append(number)
    return tuple(answer)


def _of_value(name: str) -> Callable[[View, int], Any]:
    """A question that the surroundings answer by the name of a value."""
    return lambda view, value: getattr(view.surroundings, name)(view.names[value])


def _near(view: View, value: int, expected: float) -> int:
    constant = view.surroundings.constants[view.surroundings.constant_number(view.names[value])]
    if constant is None or constant.size != 1:
        return -1
    return constant.ndim if is_near(float(constant.reshape(-1)[0]), expected, constant.dtype) else -1


def _same(view: View, value: int, expected: Exact) -> int:
    constant, goal = view.surroundings.constants[view.surroundings.constant_number(view.names[value])], expected.value
    if constant is None or constant.dtype != goal.dtype or constant.tobytes() != goal.tobytes():
        return -1
    return 0 if constant.shape == goal.shape else constant.ndim if constant.size == 1 and not goal.ndim else -1


_ANSWERS: dict[str, Callable[..., Any]] = {
    **{name: _of_value(name) for name in ("constant_number", "element_type", "rank", "shape")},
    "made": _made,
    "near": _near,
    "same": _same,
}

_Result = TypeVar("_Result")


class Memoized(Generic[_Result]):
    """A function of a view, with results reused for views that give the same answers."""

    def __init__(self, work: Callable[[View], _Result], *, memo: bool) -> None:
        """The function may use nothing but the view. Without a memo, nothing is reused."""
        self._work = work
        self._memo = memo
        self._first: dict[Any, Any] = {}

    def of(self, view: View) -> _Result:
        """The function's result for a view."""
        if not self._memo:
            return self._work(view)
        result = self._first.get(None)
        while result.__class__ is Branch:
            result = result.answers.get(result.answer(view, result.value))
        return self._learn(view) if result is None else result

    def _learn(self, view: View) -> _Result:
        view.answers = {}
        result = self._work(view)
        learn(self._first, None, view.answers, result, _ANSWERS.__getitem__)
        return result
