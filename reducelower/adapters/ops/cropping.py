"""CenterCropPad of a shape in 32 bits.

The function body in the schema (onnx 1.23.2) compares the shape with that of the data, which has 64 bits, and so takes
no other. Source: https://onnx.ai/onnx/operators/onnx__CenterCropPad.html (18).
"""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.scope.scope import Scope

__all__: list[str] = []


@expresses("CenterCropPad", opset=18)
def _with_shape_of_64_bits(node: NodeProto, scope: Scope) -> list[NodeProto] | None:
    """The same operator on the shape in 64 bits, from where the body in its schema goes on."""
    shape = node.input[1]
    if scope.needed_element_type(shape) == TensorProto.INT64:
        return None
    body = Writer(node, scope)
    body.yields("CenterCropPad", node.input[0], body.add("Cast", shape, tail="shape", to=TensorProto.INT64))
    body.nodes[-1].attribute.extend(node.attribute)
    return body.nodes
