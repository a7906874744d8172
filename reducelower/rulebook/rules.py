"""Rule books by name, and the one that the engine uses in a run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from onnx import NodeProto, TensorProto

from reducelower.errors import RefusedError, RuleError
from reducelower.model.attributes import value_of
from reducelower.model.schemas import parse_element_type
from reducelower.model.text import did_you_mean
from reducelower.rulebook.book import Rule, RuleBook
from reducelower.rulebook.reading import SUFFIX, VERSIONS, home, shipped_books
from reducelower.scope.scope import Scope

__all__ = ["SHIPPED", "Rules", "load_book"]

SHIPPED = ("spec", "stable", "core")
"""Shipped rule books for Reduce operators."""

_EXTENDS = {"core": "stable"}
"""Shipped book, and the book it falls back to for operators without a rule of its own."""

_WIDER = frozenset({TensorProto.FLOAT})
"""The types in which narrower ones are computed."""


def load_book(name: str | os.PathLike[str]) -> RuleBook:
    """A shipped book by its name (``spec``, ``stable``, ``core``), or a folder of rules by its path.

    A shipped book wins over a folder of the same name in the working directory; write ``./spec`` for the folder.

    Raises:
        RuleError: there is no such book, or the folder has no rule.
    """
    return _load_shipped(name) if isinstance(name, str) and name in shipped_books() else _load_folder(Path(name))


@cache
def _load_shipped(name: str) -> RuleBook:
    extends = _EXTENDS.get(name)
    return RuleBook(name, home() / name, extends=_load_shipped(extends) if extends else None, trusted=True)


def _load_folder(path: Path) -> RuleBook:
    if not path.is_dir():
        books = sorted(shipped_books())
        suggestion = did_you_mean(str(path), books)
        raise RuleError(f"neither a folder of rules nor a shipped book ({', '.join(books)}){suggestion}", path)
    is_of_boundaries = not any(path.glob(f"*{SUFFIX}")) and (path / VERSIONS).is_dir()
    extends = _load_shipped("stable") if is_of_boundaries else None
    return RuleBook(path.resolve().name, path, extends=extends)


class Rules:
    """The rule book of a run, with the types in which nothing may be computed."""

    def __init__(self, book: str | os.PathLike[str] | RuleBook, without_types: Iterable[str] = ()) -> None:
        """Take the book, or its name, and the element types in which nothing may be computed."""
        self.book = book if isinstance(book, RuleBook) else load_book(book)
        self._forbidden = frozenset(map(parse_element_type, without_types))

    def find(self, node: NodeProto, scope: Scope) -> Rule:
        """The rule for a node.

        Raises:
            RefusedError: the book has none for the operator or its element type.
        """
        rule = self._find(self.book, node, scope)
        if rule is None:
            raise RefusedError(
                f"the rule book {self.book.name!r} has no rule for {node.op_type}",
                "write one",
            )
        return rule

    def find_simpler(self, node: NodeProto, scope: Scope) -> Rule:
        """The rule that expands a composite reduction if the user need not have asked for that: of any book."""
        for book in (self.book, load_book("stable"), load_book("core")):
            if (rule := self._find(book, node, scope)) is not None:
                return rule
        return self.find(node, scope)

    def _find(self, book: RuleBook, node: NodeProto, scope: Scope) -> Rule | None:
        try:
            rules = book.rules(node.op_type)
            if len(rules) < 2 and not any(rule.element_types for rule in rules):
                return rules[0] if rules else None
            element_type = scope.needed_element_type(node.input[0])
            # A node that asks for sums in the type of its data is computed as if there was no wider type.
            stays = element_type == value_of(node, "stash_type", TensorProto.FLOAT)
            return book.find(node.op_type, element_type, self._forbidden | _WIDER if stays else self._forbidden)
        except RuleError as error:
            raise RefusedError(f"its rule is wrong: {error}", "mend the rule") from error
