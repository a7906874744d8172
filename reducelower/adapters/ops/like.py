"""CastLike where the target has none: a Cast to the element type of the other input.

Source: https://onnx.ai/onnx/operators/onnx__CastLike.html (15 and later).
"""

from __future__ import annotations

from onnx import NodeProto, TensorProto, helper, numpy_helper

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.model.attributes import attribute_of
from reducelower.scope.scope import Scope

__all__: list[str] = []

# Numbers that a cast turns into the same ones whoever casts them, and small enough to hold once more.
_FOLDED = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.INT32)
_SMALL = 64


@expresses("CastLike", opset=24)
def _cast_like(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """Cast, or the constant itself in the other type, as in the function bodies that CastLike was made for."""
    data, other = node.input[:2]
    goal = scope.needed_element_type(other)
    body = Writer(node, scope)
    value = scope.constant(data)
    if value is not None and value.size <= _SMALL and scope.element_type(data) in _FOLDED and goal in _FOLDED[:2]:
        scope.release(data)
        array = value.astype(helper.tensor_dtype_to_np_dtype(goal))
        return body.yields("Constant", value=numpy_helper.from_array(array, node.output[0]))
    marks = {
        name: attribute for name in ("saturate", "round_mode") if (attribute := attribute_of(node, name)) is not None
    }
    nodes = body.yields("Cast", data, to=goal)
    nodes[-1].attribute.extend(marks.values())
    return nodes
