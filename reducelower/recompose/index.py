"""The forms of one run, found by how they end: what each looks like is worked out when it could be met."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from onnx import FunctionProto

from reducelower.options import Book
from reducelower.recompose.forms import Form, Manner, Pattern, pattern_of, takes_count
from reducelower.rulebook import RuleBook, load_book
from reducelower.rulebook.book import load_forms

__all__ = ["FormIndex", "Shape", "reductions_of"]

_MORE_STEPS = 2
"""Nodes that an older opset version may put between a reduction and the result of a form, such as a Cast."""


@dataclass(frozen=True)
class Shape:
    """A form as it looks in one manner."""

    form: Form
    manner: Manner
    pattern: Pattern


class FormIndex:
    """The forms that are looked for.

    Attributes:
        reductions: the Reduce operators that forms are made of.
        farthest: how many nodes the result of a form may be from the nearest reduction in it.
    """

    def __init__(self, ops: Collection[str] | None, books: Iterable[Book], *, by_hand: bool) -> None:
        """Gather the forms.

        Args:
            ops: operators to raise to; None means all.
            books: rule books whose bodies are looked for; the first to have a form gives it its name.
            by_hand: whether to look for what people write by hand as well.
        """
        self._ops = ops
        self._books = [(book if isinstance(book, RuleBook) else load_book(book), False) for book in books]
        self._books += [(book, True) for book in load_forms()] if by_hand else []
        bodies = [rule.function for book, _ in self._books for name in reductions_of(book) for rule in book.rules(name)]
        self.reductions = frozenset(
            node.op_type for body in bodies for node in body.node if node.op_type.startswith("Reduce")
        )
        self.farthest = max(map(_steps_to_reduction, bodies), default=0) + _MORE_STEPS
        self._count_ends = frozenset(map(_end, filter(takes_count, bodies)))
        self._forms: dict[int, Sequence[Form]] = {}
        self._shapes: dict[Manner, Mapping[str, Sequence[Shape]]] = {}

    def ending_in(self, op_type: str, manner: Manner) -> Sequence[Shape]:
        """The forms whose result is that of a node of this operator."""
        if manner not in self._shapes:
            by_end: dict[str, list[Shape]] = {}
            for form in self._of(manner.element_type):
                pattern = pattern_of(form, manner)
                if pattern is not None:
                    by_end.setdefault(pattern.last.op_type, []).append(Shape(form, manner, pattern))
            self._shapes[manner] = by_end
        return self._shapes[manner].get(op_type, ())

    def may_take_count(self, op_type: str) -> bool:
        """Whether a form that states how many elements it reduces ends in a node of this operator."""
        return op_type in self._count_ends

    def _of(self, element_type: int) -> Sequence[Form]:
        if element_type not in self._forms:
            self._forms[element_type] = tuple(self._forms_of(element_type))
        return self._forms[element_type]

    def _forms_of(self, element_type: int) -> Iterator[Form]:
        seen: set[int] = set()
        for book, is_by_hand in self._books:
            for op_type in reductions_of(book):
                rule = book.find(op_type, element_type)
                # A rule that a book takes over from another is one form, not two.
                if rule is not None and id(rule) not in seen and (self._ops is None or op_type in self._ops):
                    seen.add(id(rule))
                    yield Form(op_type, rule, book, is_by_hand)


def reductions_of(book: RuleBook) -> tuple[str, ...]:
    """The Reduce operators that a book has rules for."""
    return tuple(name for name in book.operators if name.startswith("Reduce"))


def _end(function: FunctionProto) -> str:
    """The operator that yields the result of a function."""
    return next((node.op_type for node in function.node if function.output[0] in node.output), "")


def _steps_to_reduction(function: FunctionProto) -> int:
    """How many nodes the result of a function is from the nearest reduction in it."""
    producers = {name: node for node in function.node for name in node.output}
    border, steps = {function.output[0]}, 0
    while border and steps <= len(function.node):
        nodes = [producers[name] for name in border if name in producers]
        if any(node.op_type.startswith("Reduce") for node in nodes):
            return steps
        border, steps = {name for node in nodes for name in node.input}, steps + 1
    return 0
