"""The rule book: ONNX functions, kept as text, that replace an operator."""

from reducelower.rulebook.bindings import bind
from reducelower.rulebook.book import Rule, RuleBook, load_book, shipped_books
from reducelower.rulebook.errors import RuleError

__all__ = ["Rule", "RuleBook", "RuleError", "bind", "load_book", "shipped_books"]
