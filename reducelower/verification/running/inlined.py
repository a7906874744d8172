"""Models with their local functions in place of the calls: so two models are compared, whatever calls what."""

from __future__ import annotations

import hashlib
from copy import deepcopy
from typing import Any

from onnx import ModelProto

from reducelower.model.calls import called_function, functions_of
from reducelower.model.graph import all_nodes
from reducelower.model.inlining import inline

__all__ = ["inlined"]


def inlined(model: ModelProto) -> ModelProto:
    """A copy without local functions; the model itself if it has none.

    A function that cannot be inlined stays, in a domain that only models with the same functions have.
    """
    if not model.functions:
        return model
    copy = deepcopy(model)
    inline(copy)
    _rename_rest(copy)
    return copy


def _rename_rest(model: ModelProto) -> None:
    functions = functions_of(model)
    if not functions:
        return
    whole = b"".join(function.SerializeToString(deterministic=True) for function in functions.values())
    mark = hashlib.sha256(whole).hexdigest()[:8]
    calls: list[Any] = [node for node in all_nodes(model) if called_function(node) in functions]
    imports: list[Any] = [
        *model.opset_import,
        *(entry for function in model.functions for entry in function.opset_import),
    ]
    domains = {domain for domain, _, _ in functions}
    for item in (*calls, *model.functions, *(entry for entry in imports if entry.domain in domains)):
        item.domain = f"{item.domain} {mark}"
