"""Make dataclasses from the tables of a TOML file; errors say where the fault is.

The dataclasses define the format: their fields are its keys, with the types of the fields. Libraries that do this were
tried: cattrs silently accepts ``"no"`` for true and 1 for ``"1"``, msgspec ignores a misspelt key of a dataclass, none
suggests the right key, and each takes three to six times as long to import as tomllib.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import date
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from reducelower.errors import TargetError
from reducelower.runtimes.ranges import Ranges, Versions
from reducelower.text import did_you_mean

__all__ = ["HINT", "KEY", "structure"]

KEY = "key"
"""Metadata of a field: its key in the file, if that cannot be a name in Python."""

HINT = "hint"
"""Metadata of a field: what to write if it is missing."""

Made = TypeVar("Made")


def structure(kind: type[Made], table: Mapping[str, Any], source: str, place: str = "") -> Made:
    """A dataclass from a table at a place in a file.

    A field is of a plain type, a `Literal`, a `Ranges` or `Versions` (which are text in the file), another dataclass, a
    mapping or tuple of one, or a frozenset of texts. A text may be `Annotated` with a function that returns what is
    wrong with it, or an empty text.

    Raises:
        TargetError: the table has an unknown key, lacks a required one, or has a value of another type.
    """
    by_key = {field.metadata.get(KEY, field.name): field for field in fields(kind)}  # type: ignore[arg-type]
    for key in table:
        if key not in by_key:
            hint = did_you_mean(key, sorted(by_key)) or f"; there are {', '.join(sorted(by_key))}"
            raise TargetError(f"a target file has no such key{hint}", source, f"{place}.{key}".lstrip("."))
    types = _types(kind)  # type: ignore[arg-type]  # a class is hashable
    values = {}
    for key, field in by_key.items():
        where = f"{place}.{key}".lstrip(".")
        if key in table:
            values[field.name] = _value(types[field.name], table[key], source, where)
        elif field.default is field.default_factory is MISSING:
            raise TargetError("; ".join(["is missing", *filter(None, [field.metadata.get(HINT)])]), source, where)
    try:
        return kind(**values)
    except ValueError as error:
        raise TargetError(str(error), source, place) from None


@cache
def _types(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _value(kind: Any, value: Any, source: str, place: str) -> Any:
    check = None
    if get_origin(kind) in (Union, UnionType):
        (kind,) = (each for each in get_args(kind) if each is not NoneType)
    if get_origin(kind) is Annotated:
        kind, check = get_args(kind)
    of, origin = get_args(kind), get_origin(kind) or kind
    if kind in _FROM_TEXT:
        return _parsed(kind, value, source, place)
    if origin is Literal:
        if value not in of:
            raise TargetError(f"is {value!r}; it must be one of {', '.join(of)}", source, place)
        return value
    if origin in (frozenset, tuple):
        item, items = (str, "strings") if origin is frozenset else (dict, "tables")
        if not isinstance(value, list) or not all(isinstance(each, item) for each in value):
            raise TargetError(f"is {value!r}; it must be a list of {items}", source, place)
        places = [place if item is str else f"{place} {number}" for number in range(1, len(value) + 1)]
        return origin(_value(of[0], each, source, where) for each, where in zip(value, places, strict=True))
    plain = dict if is_dataclass(kind) else origin
    if not isinstance(value, plain) or (plain is int and isinstance(value, bool)):
        raise TargetError(f"is {value!r}; it must be {_KINDS[plain]}", source, place)
    if is_dataclass(kind):
        return structure(kind, value, source, place)  # type: ignore[arg-type]
    if plain is dict:
        return {key: _value(of[1], each, source, f"{place}.{key}") for key, each in value.items()}
    if check is not None and (wrong := check(value)):
        raise TargetError(wrong, source, place)
    return value


def _parsed(kind: Any, value: Any, source: str, place: str) -> Any:
    """A range, which may be written as a single number."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str):
        raise TargetError(f'is {value!r}; write a range such as "{_FROM_TEXT[kind]}"', source, place)
    try:
        return kind.parse(text)
    except ValueError as error:
        raise TargetError(str(error), source, place) from None


_FROM_TEXT: Mapping[Any, str] = {Ranges: "13-17", Versions: "1.14-1.16"}

_KINDS: Mapping[type, str] = {
    str: "a string",
    int: "a whole number",
    bool: "true or false",
    dict: "a table",
    date: "a date such as 2026-11-01",
}
