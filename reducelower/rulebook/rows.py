"""When rules of version boundaries are tried, and the package's rows: edits of attributes, or refusals, as TOML."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, TypeAlias

from onnx import FunctionProto, NodeProto

from reducelower.errors import RefusedError
from reducelower.model.attributes import drop_attribute, set_attribute
from reducelower.model.schemas import schema, schema_in_force, versions
from reducelower.rulebook.asked import Asked
from reducelower.rulebook.guards import evaluated, filled
from reducelower.rulebook.reading import VERSIONS, home
from reducelower.scope.body import AnyScope

__all__ = ["ROWS", "Occasion", "Row", "Way", "rows_of"]

ROWS = "attributes.toml"
"""The file with rows, in the package's folder of rules of version boundaries."""

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
        way: Any = match[1]
        return cls(way, match[2] or "", " ".join((match[3] or "").split()))

    def is_at(self, op_type: str, boundary: int, *, down: bool) -> bool:
        """Whether it is for nodes on their way across a boundary."""
        return self.way == ("below" if down else "from") and self.boundary(op_type) == boundary

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

    occasion: Occasion
    sets: Mapping[str, Any] = field(default_factory=dict)
    drops: tuple[str, ...] = ()
    refuse: str = ""
    hint: str = ""

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


@cache
def rows_of(op_type: str) -> tuple[Row, ...]:
    """The rows for an operator."""
    return tuple(_row(row) for op_types, rows in _tables().items() if op_type in op_types.split() for row in rows)


@cache
def _tables() -> Mapping[str, list[Mapping[str, Any]]]:
    return tomllib.loads((home() / VERSIONS / ROWS).read_text(encoding="utf-8"))


def _row(written: Mapping[str, Any]) -> Row:
    refusal = written.get("refuse", ""), written.get("hint", "")
    return Row(Occasion.of(written["at"]), written.get("set", {}), tuple(written.get("drop", ())), *refusal)
