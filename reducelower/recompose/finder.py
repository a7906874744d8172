"""Finding the forms that a value has: an automaton tells what may be one, and of all that are alike one is searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from reducelower.recompose.automaton import Automaton
from reducelower.recompose.composites import replacement
from reducelower.recompose.expressions import Form
from reducelower.recompose.place import Answer, Place
from reducelower.recompose.search import Found, search
from reducelower.recompose.view import OUTPUT, Remembered, View

__all__ = ["Candidate", "Finder"]


@dataclass(frozen=True)
class Candidate:
    """A form that was found in all places that are alike.

    Attributes:
        form: the form.
        found: where its parts are.
        answer: what comes in its place.
    """

    form: Form
    found: Found
    answer: Remembered[Answer]


class Finder:
    """Finds groups of forms in graphs of one opset version; its `automaton` is to mark a graph first."""

    def __init__(self, groups: Sequence[Sequence[Form]], opset: int) -> None:
        """Take the forms that are looked for; each group is looked for by itself."""
        self.automaton = _automaton(*map(tuple, groups))
        self._found = [Remembered(partial(_search, forms, opset)) for forms in groups]

    def found_by(self, group: int, view: View) -> Sequence[Candidate]:
        """The forms of a group that a value has, the largest first."""
        return self._found[group].of(view)


def _search(forms: Sequence[Form], opset: int, view: View) -> list[Candidate]:
    made = view.made(OUTPUT)
    end = "" if made is None else made[0].op_type
    found = [(form, state) for form in forms if end in form.ends for state in search(form.result, view)]
    found.sort(key=lambda pair: len(pair[1].nodes), reverse=True)
    return [Candidate(form, state, Remembered(partial(_answer, form, state, opset))) for form, state in found]


def _answer(form: Form, found: Found, opset: int, view: View) -> Answer:
    return replacement(Place(form, found, view, opset))


@lru_cache(maxsize=64)
def _automaton(*groups: tuple[Form, ...]) -> Automaton:
    return Automaton(groups)
