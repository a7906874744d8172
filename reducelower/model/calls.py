"""Calls of model-local functions: which are called, with which attributes, and their nodes in place of the calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, inliner

from reducelower.model.graph import all_nodes, walk

__all__ = [
    "FunctionId",
    "attributes_of_call",
    "bind",
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


def attributes_of_call(function: FunctionProto, call: NodeProto) -> dict[str, AttributeProto]:
    """The attributes of a function in one call: those of the call, and defaults for the ones it omits."""
    return {attribute.name: attribute for attribute in (*function.attribute_proto, *call.attribute)}


def bind(nodes: Iterable[NodeProto], attributes: Mapping[str, AttributeProto]) -> None:
    """Replace references to function attributes by these attributes; remove references to all others."""
    for node in walk(nodes):
        for index in reversed(range(len(node.attribute))):
            attribute = node.attribute[index]
            if attribute.ref_attr_name:
                value = attributes.get(attribute.ref_attr_name)
                name = attribute.name
                if value is None:
                    del node.attribute[index]
                else:
                    attribute.CopyFrom(value)
                    attribute.name = name


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
