"""Attribute values that the operators' pages allow, which schemas do not list; `rules/allowed.toml` lists them."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from typing import Any

from onnx import AttributeProto, NodeProto, TensorProto, helper

from reducelower.errors import RefusedError
from reducelower.model.attributes import NAMING_TYPES
from reducelower.rulebook.reading import home

__all__ = ["refuse_disallowed"]

_ELEMENT_TYPES = frozenset(TensorProto.DataType.values())


def _read() -> tuple[frozenset[str], Mapping[tuple[str, str], Collection[Any]]]:
    """The attributes that have to be positive, and the allowed values by operator and attribute."""
    tables = tomllib.loads((home() / "allowed.toml").read_text(encoding="utf-8"))
    positive = frozenset(tables.pop("positive"))
    rows = ((op_types, name, values) for op_types, table in tables.items() for name, values in table.items())
    return positive, {(op_type, name): values for op_types, name, values in rows for op_type in op_types.split()}


_POSITIVE, _ALLOWED = _read()


def refuse_disallowed(node: NodeProto) -> None:
    """Refuse a node with an attribute value that the page of its operator does not allow.

    Raises:
        RefusedError: there is one; the error names the attribute, its value, and the allowed values.
    """
    for attribute in node.attribute:
        name = attribute.name
        if name in _POSITIVE:
            numbers = attribute.ints or ([attribute.i] if attribute.type == AttributeProto.INT else [])
            if any(number <= 0 for number in numbers):
                raise _refusal(node, attribute, "only numbers above zero")
        elif name in NAMING_TYPES and attribute.type == AttributeProto.INT:
            if attribute.i not in _ELEMENT_TYPES:
                raise _refusal(node, attribute, "only the element types that the installed onnx knows")
        elif (allowed := _ALLOWED.get((node.op_type, name))) is not None and _value(attribute) not in allowed:
            raise _refusal(node, attribute, f"only {', '.join(map(str, allowed))}")


def _value(attribute: AttributeProto) -> Any:
    value = helper.get_attribute_value(attribute)
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _refusal(node: NodeProto, attribute: AttributeProto, allowed: str) -> RefusedError:
    value = _value(attribute)
    shown = list(value) if attribute.ints else value
    return RefusedError(
        f"its attribute {attribute.name} is {shown}, and {node.op_type} takes {allowed}", "correct the model"
    )
