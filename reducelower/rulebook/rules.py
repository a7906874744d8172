"""The rule book as the engine uses it, loaded on first use."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from onnx import NodeProto, TensorProto

from reducelower.errors import RefusedError, RuleError
from reducelower.model.attributes import value_of
from reducelower.model.schemas import parse_element_type
from reducelower.rulebook.boundaries import Boundaries, boundaries_of
from reducelower.rulebook.reading import Place
from reducelower.scope.scope import Scope

if TYPE_CHECKING:
    from reducelower.rulebook.book import Rule, RuleBook

__all__ = ["SHIPPED", "Rules"]

SHIPPED = ("spec", "stable", "core")
"""Shipped rule books for Reduce operators."""

_WIDER = frozenset({TensorProto.FLOAT})
"""The types in which narrower ones are computed."""


class Rules:
    """A rule book that is loaded on first use."""

    def __init__(self, book: str | os.PathLike[str] | RuleBook, without_types: Iterable[str] = ()) -> None:
        """Take the name of the book, and the element types in which nothing may be computed."""
        self._book = book
        self._expanded: list[Place] = []
        self._forbidden = frozenset(map(parse_element_type, without_types))

    @property
    def book(self) -> RuleBook:
        """The rule book."""
        if isinstance(self._book, (str, os.PathLike)):
            from reducelower.rulebook.book import load_book

            self._book = load_book(self._book)
        return self._book

    @cached_property
    def boundaries(self) -> Boundaries | None:
        """The user's rules of version boundaries, checked.

        Raises:
            RuleError: one of them is wrong.
        """
        if not self.is_own:
            return None
        boundaries = boundaries_of(self.book.directory)
        if boundaries is not None:
            from reducelower.rulebook.boundary_validation import check_boundaries

            check_boundaries(boundaries)
        return boundaries

    @property
    def is_own(self) -> bool:
        """Whether the book is one of the user's."""
        return not (isinstance(self._book, str) and self._book in SHIPPED) and self.book.name not in SHIPPED

    @property
    def applied(self) -> Sequence[Place]:
        """The places of the user's rules that were applied so far, once for each time."""
        return [*self._expanded, *((self.boundaries and self.boundaries.applied) or ())]

    def note_expanded(self, rule: Rule) -> None:
        """Note that a rule was applied, if it is one of the user's."""
        if self.is_own and rule.name.startswith(f"{self.book.name}/"):
            self._expanded.append(rule.place)

    def find(self, node: NodeProto, scope: Scope) -> Rule:
        """The rule for a node.

        Raises:
            RefusedError: the book has none for the operator or its element type.
        """
        rule = self._find(self.book, node, scope)
        if rule is None:
            raise RefusedError(
                f"the rule book {self.book.name!r} has no rule for {node.op_type}",
                "choose another with --rules, or write one",
            )
        return rule

    def find_simpler(self, node: NodeProto, scope: Scope) -> Rule:
        """The rule that expands a composite reduction if the user did not ask for a particular book."""
        from reducelower.rulebook.book import load_book

        # The specification's bodies overflow where kernels do not, so stable ones are preferred. These need the rank
        # below opset 18, for their ReduceMax, and the element type, for their constants.
        is_ranked = scope.rank(node.input[0]) is not None or scope.target_opset >= 18
        is_typed = scope.element_type(node.input[0]) is not None
        books = [load_book("stable" if is_ranked and is_typed else "spec"), load_book("core")]
        if self.book.name != "spec":
            books.insert(0, self.book)
        for book in books:
            rule = self._find(book, node, scope)
            if rule is None:
                continue
            if book.name == "stable" and not is_ranked and "ReduceMax" in rule.operators:
                data = node.input[0]
                raise RefusedError(
                    f"its axes are computed at run time, and the rank of {data!r} is not known",
                    f"{scope.how_to_declare(data, 'rank')}, make the axes constant, aim at opset 18, "
                    "or take bodies that overflow with --rules spec",
                )
            return rule
        return self.find(node, scope)

    def _find(self, book: RuleBook, node: NodeProto, scope: Scope) -> Rule | None:
        try:
            rule = book.find(node.op_type, None)
            if rule is None or rule.needs_element_type:
                if rule is None and node.op_type not in book.operators:
                    return None
                element_type = scope.needed_element_type(node.input[0])
                # A node that asks for sums in the type of its data is computed as if there was no wider type.
                stays = element_type == value_of(node, "stash_type", TensorProto.FLOAT)
                rule = book.find(node.op_type, element_type, self._forbidden | _WIDER if stays else self._forbidden)
        except RuleError as error:
            raise RefusedError(f"its rule is wrong: {error}", "mend the rule") from error
        return rule
