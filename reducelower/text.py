"""Make text from models and users safe to print; suggest the nearest name for a typing error."""

from __future__ import annotations

import ast
import operator
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

__all__ = [
    "OPERATIONS", "calculated", "counted", "did_you_mean", "expression", "one_line", "shape_text", "short", "shown",
    "xml_text",
]  # fmt: skip

_LONGEST = 1000
_READ = 10 * _LONGEST
_NOT_IN_XML = "[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]"


def shown(text: str) -> str:
    """The text without control characters: line ends, terminal codes, writing direction."""
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST - 60]} ... {text[-50:]}"
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in text
    )


_parsing = threading.RLock()  # reentrant, since garbage collection during a parse may parse as well


OPERATIONS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}  # fmt: skip
"""The operations that expressions of whole numbers may have."""


def expression(text: str) -> ast.expr:
    """A Python expression, as a tree.

    CPython 3.11 counts the parser's depth for all threads together, so it may raise a SystemError if two threads parse
    at once (https://github.com/python/cpython/issues/106905). So threads take turns.

    Raises:
        SyntaxError, ValueError, RecursionError: the text is no expression.
    """
    with _parsing:
        return ast.parse(text, mode="eval").body


def calculated(name: str, sizes: Mapping[str, int]) -> int | None:
    """The number for a named size, or for a calculation with named sizes such as ``2*seq``; None if one is unknown.

    Exporters name sizes after others in this way.
    """
    try:
        size = sizes[name] if name in sizes else _calculated(expression(name), sizes)
    except (KeyError, SyntaxError, ValueError, RecursionError, ZeroDivisionError):
        return None
    return size if size >= 0 else None


def _calculated(tree: ast.expr, sizes: Mapping[str, int]) -> int:
    match tree:
        case ast.Name(id=name):
            return sizes[name]
        case ast.Constant(value=int(number)):
            return number
        case ast.BinOp(left=left, op=operation, right=right):
            return int(OPERATIONS[type(operation)](_calculated(left, sizes), _calculated(right, sizes)))
    raise ValueError(ast.dump(tree))


def counted(number: int, what: str) -> str:
    """A number with its noun, such as ``1 node`` and ``1,234 nodes``."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def one_line(error: BaseException) -> str:
    """The message of another library's exception on one line; its type if the message is empty."""
    # Shape inference of a large model lists every problem in one message.
    return " ".join(str(error)[:_READ].split()) or type(error).__name__


def short(text: str, length: int) -> str:
    """Text cut in the middle to at most `length` characters, since the end of a name says more."""
    text = shown(text)
    if len(text) <= length:
        return text
    tail = length * 2 // 3
    return f"{text[: length - tail - 1]}…{text[-tail:]}"


def xml_text(text: str) -> str:
    """The text without characters that XML 1.0 does not allow."""
    return re.sub(_NOT_IN_XML, "\ufffd", text)


def shape_text(dims: tuple[int | str | None, ...] | None) -> str:
    """Sizes in ONNX's text syntax; empty if the rank is unknown."""
    return "" if dims is None else "[" + ",".join("?" if dim is None else shown(str(dim)) for dim in dims) + "]"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a sentence that suggests the nearest known name; empty if none is near."""
    from difflib import get_close_matches

    by_spelling = {other.lower(): other for other in known}
    near = get_close_matches(name.lower(), by_spelling, n=1, cutoff=0.6)
    return f"; did you mean {by_spelling[near[0]]!r}?" if near else ""
