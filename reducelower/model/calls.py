"""Which attributes of a model-local function its calls leave out, so that references to them stand for nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from onnx import FunctionProto, ModelProto, NodeProto

from reducelower.model.graph import subgraphs

__all__ = ["omitted_attributes"]

_Id: TypeAlias = tuple[str, str, str]


def omitted_attributes(model: ModelProto) -> frozenset[tuple[str, str, str, str]]:
    """Attributes without a default that some call leaves out: domain, name and overload of the function, attribute."""
    functions = {(entry.domain, entry.name, entry.overload): entry for entry in model.functions}
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
    around: _Id | None,
    functions: dict[_Id, FunctionProto],
    omitted: set[tuple[str, str, str, str]],
) -> Iterator[tuple[str, str, str, str]]:
    for node in nodes:
        called = (node.domain, node.op_type, node.overload)
        if called in functions:
            given = {
                attribute.name
                for attribute in node.attribute
                if not attribute.ref_attr_name or around is None or (*around, attribute.ref_attr_name) not in omitted
            }
            yield from ((*called, name) for name in functions[called].attribute if name not in given)
        for _, _, graph in subgraphs(node):
            yield from list(_left_out(graph.node, around, functions, omitted))
