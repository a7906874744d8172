"""Equal questions, equal result: what was asked on the way to a result, and results by the answers that led to them.

A result of a node, or of a search around a value, holds for every other of which the same questions have the same
answers. A question leads to the next by its answer, and the last one to the result. What gives a new answer is worked
out, and its answers add a branch.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple

__all__ = ["Branch", "Question", "learn"]


class Question(NamedTuple):
    """A question about a value, or about several or none of them.

    Attributes:
        name: what is asked.
        value: the number of the value; see `scope.node` for those that stand for something else.
        argument: what else determines the answer.
    """

    name: str
    value: int
    argument: Hashable = None


class Branch:
    """A question, how to answer it, and the next branch or the result for each answer."""

    __slots__ = ("answer", "answers", "question", "value")

    def __init__(self, question: Question, answer: Callable[..., Any]) -> None:
        """`answer` takes what is asked, the value, and the argument of the question if it has one."""
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
    """Put a result at the end of the branches that start at a place, under a key, and say whether it is there now.

    It is not if another question follows on equal answers: then something else decides, so it must not be reused.
    `answering` gives what answers the questions of a name.
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
