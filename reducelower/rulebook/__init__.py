"""Rule books: ONNX functions, kept as text, that replace operators."""

from __future__ import annotations

from reducelower.errors import RuleError
from reducelower.rulebook.book import Rule, RuleBook
from reducelower.rulebook.reading import shipped_books
from reducelower.rulebook.rules import load_book

__all__ = ["Rule", "RuleBook", "RuleError", "load_book", "shipped_books"]
