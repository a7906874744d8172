"""Sign where the target has none.

Source: https://onnx.ai/onnx/operators/onnx__Sign.html (9).
"""

from __future__ import annotations

from onnx import NodeProto

from reducelower.adapters.absent import expresses
from reducelower.adapters.builder import Writer
from reducelower.scope.scope import Scope

__all__: list[str] = []


@expresses("Sign", opset=8)
def _sign(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """Whether it is positive less whether it is negative."""
    element_type = scope.needed_element_type(node.input[0])
    body = Writer(node, scope)
    zero = body.constant(0, element_type, "zero")
    signs = [
        body.add("Cast", body.add(op_type, node.input[0], zero), to=element_type) for op_type in ("Greater", "Less")
    ]
    return body.yields("Sub", *signs)
