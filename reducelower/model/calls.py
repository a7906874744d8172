"""Calls of model-local functions: which functions are called, and with which attributes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto

from reducelower.model.graph import all_nodes, walk

__all__ = [
    "FunctionId",
    "attributes_given",
    "attributes_of_call",
    "bind",
    "called_function",
    "called_without_inputs",
    "function_id",
    "functions_of",
    "reached",
    "spell_out_defaults",
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


def called_without_inputs(model: ModelProto) -> Iterator[FunctionProto]:
    """Functions with a call that omits an input which the body reads."""
    passed: dict[FunctionId, list[set[int]]] = defaultdict(list)
    for node in all_nodes(model):
        passed[called_function(node)].append({number for number, name in enumerate(node.input) if name})
    for function in model.functions:
        read = {name for node in walk(function.node) for name in node.input}
        needed = {number for number, name in enumerate(function.input) if name in read}
        if not all(numbers >= needed for numbers in passed[function_id(function)]):
            yield function


def attributes_of_call(function: FunctionProto, call: NodeProto) -> dict[str, AttributeProto]:
    """The attributes of a function in one call: those of the call, and defaults for the ones it omits."""
    return {attribute.name: attribute for attribute in (*function.attribute_proto, *call.attribute)}


def attributes_given(model: ModelProto, function: FunctionProto) -> list[dict[str, AttributeProto]]:
    """The attributes of a function in each call of the model, defaults included, each combination once.

    If a calling function passes on its own attributes, its own calls determine them.
    """
    combinations: dict[tuple[bytes, ...], dict[str, AttributeProto]] = {}
    for caller in (None, *model.functions):
        nodes = walk(model.graph.node if caller is None else caller.node)
        calls = [node for node in nodes if called_function(node) == function_id(function)]
        passes_on = any(attribute.ref_attr_name for call in calls for attribute in call.attribute)
        for around in attributes_given(model, caller) if passes_on and caller is not None else [{}]:
            for call in calls:
                bound = NodeProto()
                bound.CopyFrom(call)
                bind([bound], around)
                attributes = attributes_of_call(function, bound)
                key = tuple(attributes[name].SerializeToString(deterministic=True) for name in sorted(attributes))
                combinations.setdefault(key, attributes)
    return list(combinations.values())


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


def spell_out_defaults(model: ModelProto) -> None:
    """Add to every call of a function, in place, the default attributes that it omits; onnx's inliner drops them."""
    functions = functions_of(model)
    for call in all_nodes(model):
        function = functions.get(called_function(call))
        names = {attribute.name for attribute in call.attribute}
        if function is not None:
            call.attribute.extend(default for default in function.attribute_proto if default.name not in names)
