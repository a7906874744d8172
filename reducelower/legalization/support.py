"""What converts, operator by operator, read off the schemas and the registered rewrites, for the documentation."""

from __future__ import annotations

from reducelower.adapters import constants, decompose, reductions
from reducelower.adapters.registry import Crossing, crossings
from reducelower.model.schemas import all_operators, latest_opset, schema, versions

__all__ = ["support_table"]

_REGISTERING = (constants, reductions)
"""Modules that register rewrites when they are imported."""


def support_table() -> str:
    """A Markdown table of every operator of the default domain that changed or came after opset 1.

    Operators that fare alike share a row. Boundaries that every node crosses as it is, its element types apart, are
    left out.
    """
    rows: dict[tuple[str, str], list[str]] = {}
    for op_type in sorted(all_operators()):
        down, first = _downward(op_type), _before_first(op_type)
        if down or first:
            rows.setdefault((down, first), []).append(op_type)
    lines = ["| operators | boundaries on the way down | below the first |", "|---|---|---|"]
    lines += [f"| {', '.join(names)} | {down} | {first} |" for (down, first), names in sorted(rows.items(), key=_order)]
    return "\n".join(lines) + "\n"


def _order(row: tuple[tuple[str, str], list[str]]) -> str:
    return row[1][0]


def _downward(op_type: str) -> str:
    known = [number for number in versions(op_type) if schema(op_type, number) is not None]
    if len(known) < 2:
        return ""
    path = crossings(op_type, latest_opset(), known[0]) if schema(op_type, latest_opset()) else ()
    found: dict[str, list[str]] = {}
    for crossing in path:
        found.setdefault(_treatment(crossing), []).append(str(crossing.boundary))
    return "; ".join(f"{treatment} {', '.join(numbers)}" for treatment, numbers in found.items() if treatment)


def _treatment(crossing: Crossing) -> str:
    if crossing.is_plain:
        return ""
    if crossing.rewrite is not None:
        return "rewritten at"
    if crossing.moves:
        return "input to attribute at"
    if crossing.unhandled_meaning:
        return "refused at"
    return "as far as the older version says it at"


def _before_first(op_type: str) -> str:
    first = versions(op_type)[0]
    if first == 1:
        return ""
    return f"{first}: expressed by others" if decompose.is_expressible(op_type) else f"{first}: refused"
