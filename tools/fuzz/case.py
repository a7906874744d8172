"""One case: a model, values for its inputs, and the operation to test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onnx import ModelProto, helper

import reducelower
from reducelower.model.graph import all_nodes
from reducelower.model.schemas import opset_of
from reducelower.model.skeleton import DEFAULTS_SINCE

__all__ = ["OPAQUE", "Action", "Case", "runnable"]

OPAQUE = "fuzz.opaque"
"""Domain of an operator without a schema, so that nothing is known about its output; it returns its input."""


@dataclass(frozen=True)
class Action:
    """The operation on a model: conversion to an opset version, expansion with a rule book, or raise.

    Attributes:
        kind: ``convert``, ``expand`` or ``raise``.
        opset: opset version to convert to.
        rules: rule book to expand with.
    """

    kind: str
    opset: int = 0
    rules: str = ""

    def __str__(self) -> str:
        """The name in reports."""
        return f"to {self.opset}" if self.kind == "convert" else f"{self.kind} {self.rules}".strip()

    def apply(self, model: ModelProto) -> ModelProto:
        """The resulting model; raises ConversionError if it is refused."""
        if self.kind == "convert":
            return reducelower.convert_version(model, self.opset)
        if self.kind == "expand":
            return reducelower.expand(model, rules=self.rules)
        return reducelower.raise_reductions(model)


@dataclass(frozen=True)
class Case:
    """A model, values for its inputs by name, and the operation."""

    name: str
    model: ModelProto
    feeds: Mapping[str, Any]
    action: Action


def runnable(model: ModelProto) -> ModelProto:
    """A copy in which the opaque operators have bodies, so that it can be run."""
    if not any(node.domain == OPAQUE for node in all_nodes(model)):
        return model
    copy = ModelProto.FromString(model.SerializeToString())
    body = [helper.make_node("Identity", ["x"], ["y"])]
    imports = [helper.make_opsetid("", opset_of(model))]
    copy.functions.append(helper.make_function(OPAQUE, "Opaque", ["x"], ["y"], body, imports))
    if copy.ir_version < DEFAULTS_SINCE:
        # Every initializer had to be an input then. From IR 4 on, one that is an input could be overridden.
        constants = {tensor.name for tensor in copy.graph.initializer}
        for value in [value for value in copy.graph.input if value.name in constants]:
            copy.graph.input.remove(value)
    copy.ir_version = max(copy.ir_version, 8)
    return copy
