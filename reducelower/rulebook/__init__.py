"""The rule book: ONNX functions, kept as text, that replace an operator.

Most conversions need no rule, so nothing here is imported before it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reducelower.errors import RuleError
    from reducelower.rulebook.book import Rule, RuleBook, bind, load_book, shipped_books

__all__ = ["Rule", "RuleBook", "RuleError", "bind", "load_book", "shipped_books"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.book"), name)
