"""What calls of model-local functions tell of their attributes: those written in, and those left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto

from reducelower.model.graph import subgraphs, walk

__all__ = [
    "FunctionId",
    "attributes_of_call",
    "bind",
    "called_function",
    "function_id",
    "functions_of",
    "omitted_attributes",
    "reached",
]

FunctionId: TypeAlias = tuple[str, str, str]
"""Domain, name and overload."""


def called_function(node: NodeProto) -> FunctionId:
    """The function that a node calls, if it calls one."""
    return node.domain, node.op_type, node.overload


def function_id(function: FunctionProto) -> FunctionId:
    """What calls of a function name."""
    return function.domain, function.name, function.overload


def functions_of(model: ModelProto) -> dict[FunctionId, FunctionProto]:
    """The functions of a model, by what calls of them name."""
    return {function_id(function): function for function in model.functions}


def reached(
    nodes: Iterable[NodeProto], functions: Mapping[FunctionId, FunctionProto]
) -> dict[FunctionId, FunctionProto]:
    """The functions that nodes call, and those that these call: few of the thousands that a model may have."""
    found: dict[FunctionId, FunctionProto] = {}
    pending = [nodes]
    for calling in pending:  # with what is added on the way
        for called in map(called_function, walk(calling)):
            if called in functions and called not in found:
                found[called] = functions[called]
                pending.append(found[called].node)
    return found


def attributes_of_call(function: FunctionProto, call: NodeProto) -> dict[str, AttributeProto]:
    """The attributes that a function has in a call, with the defaults of those that the call leaves out."""
    return {attribute.name: attribute for attribute in (*function.attribute_proto, *call.attribute)}


def bind(nodes: Iterable[NodeProto], given: Mapping[str, AttributeProto]) -> None:
    """Put attributes in the place of references to them; a reference to one not given goes."""
    for node in walk(nodes):
        for index in reversed(range(len(node.attribute))):
            attribute = node.attribute[index]
            if attribute.ref_attr_name:
                value = given.get(attribute.ref_attr_name)
                name = attribute.name
                if value is None:
                    del node.attribute[index]
                else:
                    attribute.CopyFrom(value)
                    attribute.name = name


def omitted_attributes(model: ModelProto) -> frozenset[tuple[str, str, str, str]]:
    """Attributes without a default that some call leaves out: domain, name and overload of the function, attribute."""
    functions = functions_of(model)
    omitted: set[tuple[str, str, str, str]] = set()
    # A call inside a function hands on what that function was itself called without.
    grown = True
    while grown:
        before = len(omitted)
        omitted.update(_left_out(model.graph.node, None, functions, omitted))
        for key, function in functions.items():
            omitted.update(_left_out(function.node, key, functions, omitted))
        grown = len(omitted) > before
    return frozenset(omitted)


def _left_out(
    nodes: Iterable[NodeProto],
    around: FunctionId | None,
    functions: dict[FunctionId, FunctionProto],
    omitted: set[tuple[str, str, str, str]],
) -> Iterator[tuple[str, str, str, str]]:
    for node in nodes:
        called = called_function(node)
        if called in functions:
            given = {
                attribute.name
                for attribute in node.attribute
                if not attribute.ref_attr_name or around is None or (*around, attribute.ref_attr_name) not in omitted
            }
            yield from ((*called, name) for name in functions[called].attribute if name not in given)
        for _, _, graph in subgraphs(node):
            yield from list(_left_out(graph.node, around, functions, omitted))
