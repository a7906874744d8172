"""Attention across its versions.

Source: https://onnx.ai/onnx/operators/onnx__Attention.html (23, 24, 25).
"""

from __future__ import annotations

from onnx import NodeProto

from reducelower.adapters.registry import Outcome, raises
from reducelower.scope.scope import Scope

__all__: list[str] = []

_PRESENT = {1: "present_key", 2: "present_value"}


@raises("Attention", 25)
def _raise_present(node: NodeProto, scope: Scope) -> Outcome:
    """Since 25 present_key and present_value are yielded together or not at all."""
    missing = [place for place in _PRESENT if len(node.output) <= place or not node.output[place]]
    if len(missing) != 1:
        return False
    while len(node.output) <= missing[0]:
        node.output.append("")
    node.output[missing[0]] = scope.fresh(node.name or node.output[0], f"/Attention/{_PRESENT[missing[0]]}")
    return True
