"""Calls of local functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from onnx import FunctionProto, ModelProto, NodeProto

from reducelower.model.graph import walk

__all__ = [
    "FunctionId",
    "called_function",
    "functions_of",
    "reached",
]

FunctionId: TypeAlias = tuple[str, str, str]
"""Domain, name and overload."""


def called_function(node: NodeProto) -> FunctionId:
    """The id of the function that a node would call; it need not exist."""
    return node.domain, node.op_type, node.overload


def _function_id(function: FunctionProto) -> FunctionId:
    """The id by which calls name a function."""
    return function.domain, function.name, function.overload


def functions_of(model: ModelProto) -> dict[FunctionId, FunctionProto]:
    """The functions of a model by their ids."""
    return {_function_id(function): function for function in model.functions}


def reached(
    nodes: Iterable[NodeProto], functions: Mapping[FunctionId, FunctionProto]
) -> dict[FunctionId, FunctionProto]:
    """The functions that nodes call, directly or through other functions."""
    called_ones: dict[FunctionId, FunctionProto] = {}
    pending = [nodes]
    for calling in pending:  # grows while it is iterated
        for called in map(called_function, walk(calling)):
            if called in functions and called not in called_ones:
                called_ones[called] = functions[called]
                pending.append(functions[called].node)
    return called_ones
