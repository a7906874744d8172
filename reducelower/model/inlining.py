"""The nodes of local functions in place of their calls."""

from __future__ import annotations

from onnx import ModelProto, inliner

from reducelower.model.calls import called_function, functions_of, reached
from reducelower.model.graph import all_nodes
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.model.validate import find_call_defect

__all__ = ["inline"]


def inline(model: ModelProto) -> None:
    """Copy functions in place of their calls.

    A function stays if a call does not fit it, or if it imports other opset versions than the model. All stay if they
    stand for too many nodes (`find_call_defect`), or if one shadows an operator, since it may call itself.
    """
    if find_call_defect(model) or any(function.domain in DEFAULT_DOMAINS for function in model.functions):
        return
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
