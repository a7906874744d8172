"""Check arguments of public functions that callers confuse: an error names the argument and says what it must be."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

__all__ = ["LARGEST_RANK", "check_book", "check_options", "check_version", "name_set", "value_text"]

_LONGEST = 60

LARGEST_RANK = 1024
"""The highest rank accepted: a broken model may claim any number of axes, and each takes memory in a type."""


def name_set(name: str, value: Any) -> frozenset[str]:
    """A collection of names as a set.

    Raises:
        TypeError: it is a single string, which would be read as a collection of letters, or an item is not a string.
    """
    says = f"{name} must be a collection of names such as ['ReduceL2']"
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise TypeError(f"{says}, not {value_text(value)}")
    names = frozenset(value)
    for each in names:
        if not isinstance(each, str):
            raise TypeError(f"{says}, and an item is {value_text(each)}")
    return names


def check_version(name: str, value: Any) -> None:
    """Check an opset version.

    Raises:
        TypeError: it is not an int.
        ValueError: onnx knows no such version.
    """
    from reducelower.model.schemas import latest_opset

    newest = latest_opset()
    says = f"{name} must be an int from 1 to {newest}, the newest opset that onnx knows here, not {value_text(value)}"
    if not _is_int(value):
        raise TypeError(says)
    if not 1 <= value <= newest:
        raise ValueError(says)


def check_book(rules: Any) -> None:
    """Check a rule book, or raise a ValueError; it is read where a rule is needed, which most conversions do not."""
    from reducelower.rulebook.reading import shipped_books

    is_path = isinstance(rules, str | os.PathLike)
    if not hasattr(rules, "rules") and not (is_path and (rules in shipped_books() or Path(rules).is_dir())):
        says = "a rule book ('spec', 'stable', 'core'), a folder of rules or a RuleBook"
        raise ValueError(f"rules must be {says}, not {value_text(rules)}")


def check_options(options: Mapping[str, Any]) -> None:
    """Check some of `options.Options`.

    Raises:
        ValueError: there is no such element type, rank or IR version.
    """
    from onnx import IR_VERSION

    from reducelower.model.schemas import parse_element_type

    version = options.get("ir_version", "auto")
    if version not in ("auto", "keep") and not (_is_int(version) and 3 <= version <= IR_VERSION):
        oldest = "3, the oldest IR version with opset versions,"
        says = f"ir_version must be 'auto', 'keep' or an int from {oldest} to {IR_VERSION}"
        raise ValueError(f"{says}, not {value_text(version)}")
    for name, spelled in (options.get("element_types") or {}).items():
        try:
            parse_element_type(spelled)
        except ValueError as error:
            raise ValueError(f"element_types[{name!r}]: {error}") from None
    for name, rank in (options.get("ranks") or {}).items():
        if not _is_int(rank) or not 0 <= rank <= LARGEST_RANK:
            raise ValueError(f"ranks[{name!r}] must be an int from 0 to {LARGEST_RANK}, not {value_text(rank)}")


def _is_int(value: Any) -> bool:
    """Whether a value is an integer, of Python or numpy."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def value_text(value: Any) -> str:
    """A value for an error message: its type, and its text if that is short."""
    text = repr(value)
    kind = type(value).__name__
    if value is None:
        return "None"
    return f"{kind} {text}" if len(text) <= _LONGEST and "\n" not in text else f"an object of type {kind}"
