"""The package's rows: edits of attributes at version boundaries, or refusals there, as TOML."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from onnx import FunctionProto

from reducelower.errors import RefusedError
from reducelower.model.attributes import drop_attribute, set_attribute
from reducelower.model.schemas import schema_in_force
from reducelower.rulebook.asked import Asked, Tried
from reducelower.rulebook.guards import evaluated, filled
from reducelower.rulebook.occasions import Occasion
from reducelower.rulebook.reading import VERSIONS, home

__all__ = ["ROWS", "Row", "rows_of"]

ROWS = "attributes.toml"
"""The file with rows, in the package's folder of rules of version boundaries."""


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

    def written(self, tried: Tried) -> None:
        """Edit the node, if the guard holds.

        Raises:
            RefusedError: the row refuses it.
        """
        node = tried.node
        # Not one that other rows asked, since these may have edited the node.
        asked = Asked(_signature(node.op_type, tried.opset, node.domain), node, tried.scope, tried.opset)
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
