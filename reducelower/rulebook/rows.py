"""When rules of version boundaries are tried, and rows: edits of attributes, or refusals, in `attributes.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from onnx import FunctionProto, NodeProto

from reducelower.errors import RefusedError, RuleError
from reducelower.model.attributes import drop_attribute, set_attribute
from reducelower.model.schemas import schema, schema_in_force, versions
from reducelower.rulebook.asked import Asked
from reducelower.rulebook.guards import check_guard, evaluated, filled
from reducelower.rulebook.reading import Place
from reducelower.scope.body import AnyScope

__all__ = ["Occasion", "Row", "Way", "read_rows"]

Way: TypeAlias = Literal["below", "from", "absent", "lacking", "called"]

_OCCASION = re.compile(r"(below|from|absent|lacking|called)(?: (?:as of )?(\w+))?(?: if (.+))?", re.DOTALL)


@dataclass(frozen=True)
class Occasion:
    """When something is tried: in which direction, at which boundary, and under which guard."""

    way: Way
    at: str
    guard: str

    @classmethod
    def of(cls, text: str) -> Occasion:
        """Read an occasion.

        Raises:
            ValueError: the text is no occasion; the message says why.
        """
        match = _OCCASION.fullmatch(text.strip())
        if match is None or (match[1] in ("below", "from") and not match[2]):
            ways = "'below N', 'from N', 'absent', 'lacking' nor 'called'"
            raise ValueError(f"{text!r} says neither {ways}, with 'if' and a guard behind it")
        guard = " ".join((match[3] or "").split())
        problem = check_guard(guard) if guard else ""
        if problem:
            raise ValueError(problem)
        way: Any = match[1]
        return cls(way, match[2] or "", guard)

    def boundary(self, op_type: str) -> int:
        """The opset version of the boundary; 0 if the operator is absent, since then it serves nodes of any version."""
        return int(self.at or 0) if not self.at or self.at.isdigit() else _version_with_attribute(op_type, self.at)


@cache
def _version_with_attribute(op_type: str, name: str) -> int:
    """The first opset version at which an operator has an attribute; 0 if there is none."""
    for version in versions(op_type):
        operator = schema(op_type, version)
        if operator is not None and name in operator.attributes:
            return version
    return 0


@cache
def _signature(op_type: str, opset: int, domain: str) -> FunctionProto:
    """An operator's inputs and outputs by their names in its schema; empty if there is no schema."""
    operator = schema_in_force(op_type, opset, domain)
    if operator is None:
        return FunctionProto()
    return FunctionProto(
        input=[formal.name for formal in operator.inputs], output=[formal.name for formal in operator.outputs]
    )


@dataclass(frozen=True)
class Row:
    """Edits of attributes, or a refusal."""

    place: Place
    occasion: Occasion
    sets: Mapping[str, Any] = field(default_factory=dict)
    drops: tuple[str, ...] = ()
    refuse: str = ""
    hint: str = ""
    applied: list[Place] | None = field(default=None, repr=False, compare=False)

    def apply(self, node: NodeProto, scope: AnyScope, opset: int) -> None:
        """Edit a node, if the guard holds.

        Raises:
            RefusedError: the row refuses it.
        """
        asked = Asked(_signature(node.op_type, opset, node.domain), node, scope, opset)
        if self.occasion.guard and not evaluated(self.occasion.guard, asked):
            return
        if self.refuse:
            raise RefusedError(filled(self.refuse, asked), filled(self.hint, asked))
        values = {name: evaluated(item, asked) if isinstance(item, str) else item for name, item in self.sets.items()}
        for name in self.drops:
            drop_attribute(node, name)
        for name, value in values.items():
            set_attribute(node, name, int(value) if isinstance(value, bool) else value)
        if self.applied is not None:
            self.applied.append(self.place)


def read_rows(path: Path, applied: list[Place] | None) -> Mapping[str, list[Row]]:
    """The rows of a file by operator; none if there is no such file. Places of applied rows are added to `applied`.

    Raises:
        RuleError: a row is not written as rows are.
    """
    rows_of: dict[str, list[Row]] = {}
    try:
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        tables = tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RuleError(f"is not TOML: {error}", path) from None
    lines = text.splitlines()
    for op_types, rows in tables.items():
        line = next((at for at, each in enumerate(lines, 1) if each.strip('"').startswith(op_types)), None)
        written = rows if isinstance(rows, list) else [rows]
        parsed = [_row(row, Place(path, line), applied) for row in written]
        for op_type in op_types.split():
            rows_of.setdefault(op_type, []).extend(parsed)
    return rows_of


_IN_A_ROW: Mapping[str, tuple[type, str]] = {
    "at": (str, "as text"), "why": (str, "as text"), "set": (dict, "as a table"), "drop": (list, "as a list"),
    "refuse": (str, "as text"), "hint": (str, "as text"),
}  # fmt: skip


def _row(written: Any, place: Place, applied: list[Place] | None) -> Row:
    if not isinstance(written, Mapping):
        raise RuleError(f"{written!r} is no row: a row is a table with 'at' and 'why'", *place)
    row = {"set": {}, "drop": [], "refuse": "", "hint": "", **written}
    for name, (kind, how) in _IN_A_ROW.items():
        if not isinstance(row.get(name), kind):
            raise RuleError(f"a row does not say {name!r} {how}", *place)
    if unknown := row.keys() - _IN_A_ROW.keys():
        raise RuleError(f"a row has no {min(unknown)!r} (known: {', '.join(_IN_A_ROW)})", *place)
    try:
        occasion = Occasion.of(row["at"])
    except ValueError as error:
        raise RuleError(str(error), *place) from None
    return Row(place, occasion, row["set"], tuple(row["drop"]), row["refuse"], row["hint"], applied)
