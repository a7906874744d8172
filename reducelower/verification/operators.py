"""What verification knows of operators: the table `operators.toml`, a row each.

Columns, by operator:
    kinds: the properties that it has, which the table describes under ``kinds``.
    where: the inputs that do not hold data, but say where or how much of it is meant: an index, an axis, a shape, a
        size, a count. Any other value is an error, or asks for more memory than there is.
    roles: by input, what it says of the first input: the kind, the attribute that says along which axis, and which
        axis that is else (`feeding.roles`).
    of_channels: the inputs that have one number for each channel.
    divisors: the inputs by which is divided.
    numbers: the inputs that are one number; onnxruntime 1.31 takes several and uses the first.
    agreeing: pairs of inputs, and which of the sizes of each are those of the other; onnxruntime 1.31 reads beside them
        where they are not.
    same: by version, the attributes that came with it, without which a node means what it meant in the version before:
        pages that were read side by side, since they use other words.
    reference: where onnx's reference evaluator (1.23) is no evidence. It is ``wrong``; ``below`` an opset version it
        runs a newer behaviour; of ``halves`` it loses what the page keeps; it is right only where attributes have the
        values that ``only`` lists, or repeat these; it does not read the input of number ``input``.
    reference_before_1_23: the same of the evaluator of onnx 1.22, besides.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["BY_PROBABILITY", "RANDOM", "column", "of_kind", "read"]


@cache
def of_kind(*kinds: str) -> frozenset[str]:
    """The operators that have one of these properties."""
    described, rows = _table()
    assert described.keys() >= set(kinds)
    return frozenset(name for name, row in rows.items() if not row.get("kinds", frozenset()).isdisjoint(kinds))


@cache
def column(name: str) -> Mapping[str, Any]:
    """What a column says, by operator; without those of which it says nothing."""
    assert name in _COLUMNS
    return {operator: row[name] for operator, row in _table()[1].items() if name in row}


def _slice(text: str) -> slice:
    return slice(*(int(part) if part else None for part in text.split(":")))


def _by_number(values: Mapping[str, Any]) -> dict[int, tuple[Any, ...]]:
    return {int(number): tuple(value) for number, value in values.items()}


_COLUMNS: Mapping[str, Callable[[Any], Any]] = {
    "kinds": frozenset,
    "where": frozenset,
    "roles": _by_number,
    "of_channels": _slice,
    "divisors": frozenset,
    "numbers": _slice,
    "agreeing": lambda pairs: [(one, other, _slice(own), _slice(others)) for one, other, own, others in pairs],
    "same": _by_number,
    "reference": dict,
    "reference_before_1_23": dict,
}


@cache
def _table() -> tuple[Mapping[str, str], Mapping[str, Mapping[str, Any]]]:
    return read(files(__package__).joinpath("operators.toml").read_text("utf-8"))


def read(text: str) -> tuple[Mapping[str, str], Mapping[str, Mapping[str, Any]]]:
    """The properties of a table, each with what it means, and the rows.

    Raises:
        ValueError: it has a column or a property that is not described.
    """
    rows = tomllib.loads(text)
    described: Mapping[str, str] = rows.pop("kinds")
    for operator, row in rows.items():
        unknown = row.keys() - _COLUMNS.keys() or set(row.get("kinds", ())) - described.keys()
        if unknown:
            raise ValueError(f"operators.toml does not say what {', '.join(sorted(unknown))} of {operator} means")
    return described, {
        operator: {name: _COLUMNS[name](value) for name, value in row.items()} for operator, row in rows.items()
    }


RANDOM = of_kind("random")
"""Operators that give another value each time."""

BY_PROBABILITY = of_kind("drawing by probability")
"""Those of which pages state the probabilities; what others draw they leave open."""
