"""Check the arguments of public functions: an error names the argument and says what it has to be."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from math import inf
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["LARGEST_RANK", "check_arguments", "name_set", "value_text"]

_LONGEST = 60

LARGEST_RANK = 1024
"""The highest rank accepted: a broken model may claim any number of axes, and each takes memory in a type."""

_MAY_BE_NONE = frozenset(
    {
        "base_dir", "budget", "dims", "element_types", "expected", "inputs", "memory", "ops", "opset", "plan", "ranks",
        "set_sizes", "tolerances",
    }
)  # fmt: skip


class _Kind(NamedTuple):
    """What an argument has to be.

    Attributes:
        says: ends the sentence "it must be".
        types: the types of which it may be one; otherwise this is a TypeError.
        allows: whether a value of such a type is allowed, as all are by default; otherwise this is a ValueError.
        items: what each item of the collection, or each value of the mapping, has to be.
        mark: an attribute of objects that are also taken. So their class need not be imported.
    """

    says: str
    types: tuple[type, ...] = ()
    allows: Callable[[Any], bool] | None = None
    items: _Kind | None = None
    mark: str = ""

    def has_type(self, value: Any) -> bool:
        """Whether a value has one of the types. True is no number, and a string no collection of letters."""
        if isinstance(value, bool):
            return bool in self.types
        if Iterable in self.types and isinstance(value, str | bytes | os.PathLike):
            return False
        return isinstance(value, self.types) or (self.mark != "" and hasattr(value, self.mark))


def _check(name: str, value: Any, kind: _Kind) -> None:
    if not kind.has_type(value):
        raise TypeError(f"{name} must be {kind.says}, not {value_text(value)}")
    if kind.allows is not None and not kind.allows(value):
        raise ValueError(f"{name} must be {kind.says}, not {value_text(value)}")
    if kind.items is not None and isinstance(value, Collection):  # the items of an iterator are checked later
        for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            _check(f"{name}[{key!r}]", item, kind.items)


def _integer(says: str, least: float = 0, most: float = inf) -> _Kind:
    return _Kind(says, (Integral,), lambda value: least <= value <= most)


def _mapping(example: Mapping[str, object], items: _Kind | None = None) -> _Kind:
    return _Kind(f"a mapping by name such as {example}", (Mapping,), items=items)


_FLAG = _Kind("True or False", (bool,))
_STRING = _Kind("a string", (str,))
_NAMES = _Kind("a collection of names such as ['ReduceL2']", (Iterable,), items=_STRING)
_SIZES = _mapping({"batch": 4}, _integer("an int from 0 on"))


@cache
def _kinds() -> Mapping[str, _Kind]:
    """What each argument has to be; the several rule books of `raise_reductions` have the name ``books``."""
    from onnx import IR_VERSION

    from reducelower.model.schemas import latest_opset, parse_element_type

    def is_element_type(name: str) -> bool:
        try:
            return bool(parse_element_type(name))
        except ValueError:
            return False

    def is_book(value: Any) -> bool:
        from reducelower.rulebook.reading import shipped_books  # most conversions need no rule

        return hasattr(value, "rules") or value in shipped_books() or Path(value).is_dir()

    newest = latest_opset()
    return {
        "target": _Kind("a reducelower.Target such as Target(13)", mark="without_types"),
        "target_version": _integer(f"an int from 1 to {newest}, the newest opset that onnx knows here", 1, newest),
        "opset": _integer("an int such as 13", -inf),
        "plan": _Kind("a reducelower.Plan, as legalize gives it", mark="source_opset"),
        "ops": _NAMES,
        "rules": _Kind(
            "a rule book ('spec', 'stable', 'core'), a folder of rules or a RuleBook",
            (str, os.PathLike),
            is_book,
            mark="rules",
        ),
        "books": _Kind("a collection of rule books such as ['stable']", (Iterable,)),
        "ir_version": _Kind(
            f"'auto', 'keep' or an int from 3, the oldest IR version with opset versions, to {IR_VERSION}",
            (str, Integral),
            lambda value: value in ("auto", "keep") if isinstance(value, str) else 3 <= value <= IR_VERSION,
        ),
        "element_types": _mapping(
            {"y": "float32"}, _Kind("an element type such as 'float32'", (str,), is_element_type)
        ),
        "ranks": _mapping({"y": 3}, _integer(f"an int from 0 to {LARGEST_RANK}", most=LARGEST_RANK)),
        "base_dir": _Kind("the path of a folder", (str, os.PathLike)),
        "assume_nonempty": _FLAG,
        "freeze_defaults": _FLAG,
        "validate": _FLAG,
        "inputs": _mapping({"x": "an array"}),
        "dims": _SIZES,
        "set_sizes": _SIZES,
        "runtimes": _Kind(_NAMES.says.replace("ReduceL2", "onnxruntime"), (Iterable,), bool, _STRING),
        "tolerances": _mapping({"float": "a Tolerance"}, _Kind("a reducelower.verification.Tolerance", mark="ulp")),
        "budget": _Kind("a number of seconds from 0 on, or None for no limit", (Real,), lambda value: value >= 0),
        "memory": _Kind("a number of GB above 0, or None for no limit", (Real,), lambda value: value > 0),
        "expected": _Kind("the outputs in graph order, such as [array]", (Iterable,)),
        "seed": _integer("an int from 0 on"),
        "provider": _Kind("the name of an execution provider such as 'cuda'", (str,)),
    }


def check_arguments(**arguments: Any) -> None:
    """Check the arguments of a public function, given by their names.

    Raises:
        TypeError: an argument has the wrong type, such as a path instead of a model.
        ValueError: an argument has a wrong value, such as the name of an unknown rule book.
    """
    for name, value in arguments.items():
        if value is not None or name not in _MAY_BE_NONE:
            _check("rules" if name == "books" else name, value, _kinds()[name])


def name_set(name: str, value: Any) -> frozenset[str]:
    """A collection of names as a set.

    Raises:
        TypeError: it is a single string, which would be read as a collection of letters, or an item is not a string.
    """
    if isinstance(value, tuple | frozenset) and not value:
        return frozenset()
    names = tuple(value) if _NAMES.has_type(value) else value
    _check(name, names, _NAMES)
    return frozenset(names)


def value_text(value: Any) -> str:
    """A value for an error message: its type, and its text if that is short."""
    text = repr(value)
    kind = type(value).__name__
    if value is None:
        return "None"
    return f"{kind} {text}" if len(text) <= _LONGEST and "\n" not in text else f"an object of type {kind}"
