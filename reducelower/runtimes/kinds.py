"""The kinds of conditions in target files: what a text in one may be."""

from __future__ import annotations

from typing import Annotated, Literal

from reducelower.model.schemas import all_operators, element_type_name, parse_element_type, versions
from reducelower.text import did_you_mean

__all__ = ["ANY_OPERATOR", "LATER", "AxesForm", "Definition", "ElementType", "Flag", "Operator"]

ANY_OPERATOR = "*"
"""Stands for every operator in a fact's list, and at the end of a name for any suffix."""

AxesForm = Literal["attribute", "initializer", "constant", "dynamic", "absent", "omitted", "empty"]
"""How the axes of a reduction are written."""

Definition = Literal["fed", "initializer", "constant", "dynamic"]
"""How a value is defined: as a model input, an initializer, by a Constant node, or computed."""

Flag = Literal["0", "1", "unset"]
"""An attribute that is on or off, as written."""

LATER = frozenset({"SwiGLU"})
"""Operators of opset 28. onnx 1.22 does not know them yet, but target files that name them can still be read."""


def _operator_error(name: str) -> str:
    """Why this does not name an operator; empty if it does."""
    if name.endswith(ANY_OPERATOR) or versions(name) or name in LATER:
        return ""
    return f"names {name!r}, which is not an operator{did_you_mean(name, all_operators())}"


def _element_type_error(name: str) -> str:
    """Why this does not name an element type; empty if it does."""
    try:
        written = element_type_name(parse_element_type(name))
    except ValueError as error:
        return str(error)
    return "" if written == name else f"names {name!r}, which ONNX writes {written!r}"


Operator = Annotated[str, _operator_error]
ElementType = Annotated[str, _element_type_error]
