"""Decision trees over questions and answers, which find the result of a node again for equal ones.

A result for a node, or of a search around a value, holds for every other node or value with the same answers to the
same questions. Each answer leads to the next question, and the last one to the result. If an answer is new, the result
is worked out, and the answers that led to it add a branch.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple

__all__ = ["Branch", "Question", "learn"]


class Question(NamedTuple):
    """A question about a value, or about several or none of them.

    Attributes:
        name: the name of the question.
        value: the number of the value; some stand for something else, such as `ALL_OPERANDS`.
        argument: what else determines the answer.
    """

    name: str
    value: int
    argument: Hashable = None


class Branch:
    """A question, how to answer it, and the next branch or the result for each answer."""

    __slots__ = ("answer", "answers", "question", "value")

    def __init__(self, question: Question, answer: Callable[..., Any]) -> None:
        """`answer` takes whom to ask, the value, and the argument of the question if it has one."""
        argument = question.argument
        bound: Callable[[Any, Any], Any] = lambda asked, value: answer(asked, value, argument)  # noqa: E731
        self.question = question
        self.value = question.value
        self.answer: Callable[[Any, Any], Any] = answer if argument is None else bound
        self.answers: dict[Hashable, Any] = {}


def learn(
    place: dict[Any, Any],
    key: Hashable,
    trail: Mapping[Question, Hashable],
    result: object,
    answering: Callable[[str], Callable[..., Any]],
) -> bool:
    """Store a result at the end of the branches that start at `place[key]`; return whether it was stored.

    It is not stored if another question follows the same answers: something else decides then, so no node may reuse it.
    `answering` returns the function that answers the questions of a name.
    """
    for question, answer in trail.items():
        branch = place.get(key)
        if branch is None:
            branch = place[key] = Branch(question, answering(question.name))
        elif branch.__class__ is not Branch or branch.question != question:
            return False
        place, key = branch.answers, answer
    place[key] = result
    return True
