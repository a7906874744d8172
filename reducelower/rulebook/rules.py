"""Rule books by name, and the rules in them that a node needs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from onnx import NodeProto

from reducelower.errors import RefusedError, RuleError
from reducelower.rulebook.book import Rule, RuleBook
from reducelower.rulebook.reading import SUFFIX, VERSIONS, home, shipped_books
from reducelower.scope.scope import Scope
from reducelower.text import did_you_mean

__all__ = ["SHIPPED", "load_book", "no_rule", "simpler_rule"]

SHIPPED = ("spec", "stable", "core")
"""Shipped rule books for Reduce operators."""

_EXTENDS = {"core": "stable"}
"""Shipped book, and the book it falls back to for operators without a rule of its own."""


def load_book(name: str | os.PathLike[str] | RuleBook) -> RuleBook:
    """A shipped book by its name (``spec``, ``stable``, ``core``), a folder of rules by its path, or the book itself.

    A shipped book wins over a folder of the same name in the working directory; write ``./spec`` for the folder.

    Raises:
        RuleError: there is no such book, or the folder has no rule.
    """
    if isinstance(name, RuleBook):
        return name
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


def simpler_rule(book: RuleBook, node: NodeProto, scope: Scope, without_types: Iterable[str] = ()) -> Rule:
    """The rule that expands a composite reduction if the user need not have asked for that: of any book.

    Raises:
        RefusedError: no book has one.
    """
    found = (each.rule_for(node, scope, without_types) for each in (book, load_book("stable"), load_book("core")))
    rule = next(filter(None, found), None)
    if rule is None:
        raise no_rule(book, node, scope)
    return rule


def no_rule(book: RuleBook, node: NodeProto, scope: Scope, without_types: Iterable[str] = ()) -> RefusedError:
    """The refusal of a node for which a book has no rule; it names another shipped book that has one."""
    others = [name for name in SHIPPED if load_book(name).rule_for(node, scope, without_types)]
    hint = f"--rules {others[0]} has one" if others else "write one"
    return RefusedError(f"the rule book {book.name!r} has no rule for {node.op_type}", hint)
