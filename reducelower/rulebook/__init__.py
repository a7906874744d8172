"""Rule books: ONNX functions, kept as text, that replace operators.

Most conversions need no rule, so nothing here is imported before its first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reducelower.errors import RuleError
    from reducelower.rulebook.book import Rule, RuleBook, load_book, shipped_books

__all__ = ["Rule", "RuleBook", "RuleError", "load_book", "shipped_books"]


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.book"), name)
