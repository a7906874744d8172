"""Models with their local functions in place of the calls: so two models are compared, whatever calls what."""

from __future__ import annotations

import hashlib
from copy import deepcopy
from typing import Any

from onnx import ModelProto, NodeProto

from reducelower.model.calls import called_function, functions_of, inline
from reducelower.model.graph import all_nodes, bodies

__all__ = ["PLACE", "inlined", "stood_at"]

PLACE = "reducelower place"
"""Metadata of each node that says where it stood."""


def inlined(model: ModelProto) -> ModelProto:
    """A copy without local functions, whose nodes say where they stood; the model itself if it has no functions.

    A function that cannot be inlined stays, in a domain that only models with the same functions have.
    """
    if not model.functions:
        return model
    copy = deepcopy(model)
    for path, holder in bodies(copy):
        for at, node in enumerate(holder.node):
            place = "\n".join((path, str(at), node.name or f"{node.op_type}#{at}"))
            node.metadata_props.add(key=PLACE, value=place)
    inline(copy)
    _rename_rest(copy)
    return copy


def _rename_rest(model: ModelProto) -> None:
    functions = functions_of(model)
    if not functions:
        return
    whole = b"".join(function.SerializeToString(deterministic=True) for function in functions.values())
    mark = hashlib.sha256(whole).hexdigest()
    calls: list[Any] = [node for node in all_nodes(model) if called_function(node) in functions]
    imports: list[Any] = [
        *model.opset_import,
        *(entry for function in model.functions for entry in function.opset_import),
    ]
    domains = {domain for domain, _, _ in functions}
    for item in (*calls, *model.functions, *(entry for entry in imports if entry.domain in domains)):
        item.domain = f"{item.domain} {mark}"


def stood_at(node: NodeProto, path: str, at: int) -> tuple[str, int, str]:
    """The graph path, position and name of a node in the model before functions were inlined.

    Args:
        node: the node.
        path: of the graph in which it stands now.
        at: its position there.
    """
    for item in node.metadata_props:
        if item.key == PLACE:
            graph, position, name = item.value.split("\n", 2)
            return graph, int(position), name
    return path, at, node.name or f"{node.op_type}#{at}"
