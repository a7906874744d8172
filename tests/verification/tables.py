"""Models written in tables.

What a row or group may hold beside what is said of its models:

- ``graph``: inputs, outputs and initializers, if texts are nodes. Behind a whole graph, functions of the domain local
  may stand.
- ``opset`` and ``ir``: versions of the model, or of each of two.
- ``parts``: texts that are filled in at ``$name``; ``each``: parameters with their values (see `tests.table`);
  ``let``: expressions of numpy, filled in as well.
- ``given``: expressions for inputs.
- ``of_any_rank``: values that are stated without a shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import Template
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, defs

from reducelower.verification import Tolerance, Verification
from tests.models import model
from tests.table import VOCABULARY

__all__ = ["FIELDS", "evaluated", "filled", "given", "holding", "is_verdict", "written"]

DOMAINS = ("local", "ai.onnx.ml", "com.microsoft")
FIELDS = {"graph", "opset", "ir", "parts", "each", "let", "given", "of_any_rank"}


def written(row: Mapping[str, Any], text: str, chosen: Mapping[str, Any], at: int = 0) -> ModelProto:
    """The model of a text, where parameters are what is chosen; the test is skipped if onnx is too old for it."""
    opset, ir = (each[at] if isinstance(each, list) else each for each in (row.get("opset", 18), row.get("ir", 8)))
    if opset > defs.onnx_opset_version():
        pytest.skip(f"onnx does not know opset version {opset}")
    whole = filled(f"{row['graph']} {{ {text} }}" if "graph" in row else text, row, chosen)
    imports = ", ".join(f'"{each}": 1' for each in DOMAINS if f"{each}." in whole)
    made = model(whole, opset, ir, imports=imports)
    for value in (*made.graph.input, *made.graph.output):
        if value.name in row.get("of_any_rank", ()):
            value.type.tensor_type.ClearField("shape")
    return made


def filled(text: str, row: Mapping[str, Any], chosen: Mapping[str, Any]) -> str:
    """A text with parts, parameters and what is told by expressions."""
    names = dict(chosen)
    for name, expression in row.get("let", {}).items():
        names[name] = eval(expression, {**VOCABULARY, **names})
    while "$" in text:
        text = Template(text).substitute(row.get("parts", {}), **names)
    return text


def given(row: Mapping[str, Any], chosen: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The inputs that a row gives."""
    return {name: np.asarray(value) for name, value in evaluated(row.get("given", {}), chosen).items()}


def evaluated(expressions: Mapping[str, str], chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The values of expressions of numpy by name."""
    return {name: eval(text, {**VOCABULARY, "Tolerance": Tolerance, **chosen}) for name, text in expressions.items()}


def holding(row: Mapping[str, Any], found: Verification, chosen: Mapping[str, Any]) -> dict[str, bool]:
    """Of what a row says to be true of a verification, whether it is."""
    names = {**VOCABULARY, "all": all, "any": any, **chosen, "found": found}
    return {text: bool(eval(text, names)) for text in row.get("holds", ())}


def is_verdict(found: Verification, verdict: str) -> bool:
    """Whether it is the verdict that a row states."""
    return found.verdict != "different" if verdict == "not different" else found.verdict == verdict
