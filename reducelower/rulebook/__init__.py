"""Rule books: ONNX functions, kept as text, that replace operators."""

from __future__ import annotations

from reducelower.errors import RuleError
from reducelower.rulebook.book import Rule, RuleBook, load_book
from reducelower.rulebook.reading import shipped_books

__all__ = ["Rule", "RuleBook", "RuleError", "load_book", "shipped_books"]
