"""Calls of local functions, and the nodes of functions in place of their calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from onnx import FunctionProto, ModelProto, NodeProto, inliner

from reducelower.model.graph import all_nodes, walk

__all__ = [
    "FunctionId",
    "called_function",
    "function_id",
    "functions_of",
    "inline",
    "reached",
]

FunctionId: TypeAlias = tuple[str, str, str]
"""Domain, name and overload."""


def called_function(node: NodeProto) -> FunctionId:
    """The id of the function that a node would call; it need not exist."""
    return node.domain, node.op_type, node.overload


def function_id(function: FunctionProto) -> FunctionId:
    """The id by which calls name a function."""
    return function.domain, function.name, function.overload


def functions_of(model: ModelProto) -> dict[FunctionId, FunctionProto]:
    """The functions of a model by their ids."""
    return {function_id(function): function for function in model.functions}


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


def inline(model: ModelProto) -> None:
    """Copy functions in place of their calls.

    A function stays if a call does not fit it, or if it imports other opset versions than the model.
    """
    _spell_out_defaults(model)
    try:
        model.CopyFrom(inliner.inline_local_functions(model))
    except Exception:  # a call that does not fit its function, of which onnx raises several types
        return
    called = reached(model.graph.node, functions_of(model))
    del model.functions[:]
    model.functions.extend(called.values())


def _spell_out_defaults(model: ModelProto) -> None:
    """Add to every call of a function the default attributes that it omits; onnx's inliner drops them."""
    functions = functions_of(model)
    for call in all_nodes(model):
        function = functions.get(called_function(call))
        names = {attribute.name for attribute in call.attribute}
        if function is not None:
            call.attribute.extend(default for default in function.attribute_proto if default.name not in names)
