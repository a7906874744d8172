"""What verification knows about operators: the table `operators.toml`, with a row for each operator.

Columns:
    kinds: properties of the operator; the table describes them under ``kinds``.
    where: the inputs that hold no data but say where or how much: an index, an axis, a shape, a size, a count. Values
        that do not fit the data are an error, or need more memory than there is.
    roles: for such inputs, what they say about the first input: the kind of the role, the attribute that names the
        axis, and its default (`feeding.roles`); then the number of another input, if they say it about that one.
    divisors: the inputs that others are divided by.
    same: by version, the attributes that it added; a node without them means the same as in the version before. Their
        pages were compared by hand, since the wording differs.
    reference: where onnx's reference evaluator (1.23) is no evidence: the operator is ``wrong``; ``below`` an opset
        version it behaves as in a newer one; with ``halves`` it loses what the page keeps; it is right ``only`` if
        attributes have a listed value, or repeat the listed ones; it ignores the input of number ``input``.
    reference_before_1_23: the same, in addition, for the evaluator of onnx 1.22.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from onnx import NodeProto

from reducelower.model.schemas import DEFAULT_DOMAINS

__all__ = ["BY_PROBABILITY", "RANDOM", "column", "described", "of_kind", "row_of"]


@cache
def of_kind(*kinds: str) -> frozenset[str]:
    """The operators that have one of these properties."""
    assert described() >= set(kinds)
    rows = _table()[1]
    return frozenset(name for name, row in rows.items() if not row.get("kinds", frozenset()).isdisjoint(kinds))


def described() -> frozenset[str]:
    """The properties that the table describes."""
    return frozenset(_table()[0])


@cache
def column(name: str) -> Mapping[str, Any]:
    """The values of a column, by operator; operators without a value are left out."""
    assert name in _COLUMNS
    return {operator: row[name] for operator, row in _table()[1].items() if name in row}


def row_of(node: NodeProto) -> str:
    """The name of a node's row: its operator, in other domains than those of ONNX after the domain and a dot."""
    return node.op_type if node.domain in _ONNX else f"{node.domain}.{node.op_type}"


_ONNX = DEFAULT_DOMAINS | {"ai.onnx.ml"}


def _by_number(values: Mapping[str, Any]) -> dict[int, tuple[Any, ...]]:
    return {int(number): tuple(value) for number, value in values.items()}


_COLUMNS: Mapping[str, Callable[[Any], Any]] = {
    "kinds": frozenset,
    "where": frozenset,
    "roles": _by_number,
    "divisors": frozenset,
    "same": _by_number,
    "reference": dict,
    "reference_before_1_23": dict,
}


@cache
def _table() -> tuple[Mapping[str, str], Mapping[str, Mapping[str, Any]]]:
    """The described properties, and the rows."""
    rows = tomllib.loads(files(__package__).joinpath("operators.toml").read_text("utf-8"))
    described: Mapping[str, str] = rows.pop("kinds")
    return described, {
        operator: {name: _COLUMNS[name](value) for name, value in row.items()} for operator, row in rows.items()
    }


RANDOM = of_kind("random")
"""Operators that draw random numbers."""

BY_PROBABILITY = of_kind("drawing by probability")
"""Random operators whose pages state the probabilities."""
