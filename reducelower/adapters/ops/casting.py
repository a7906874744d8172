"""Cast before opset 6, whose attribute named the element type, CastLike, and Concat before opset 4.

Sources: https://onnx.ai/onnx/operators/onnx__Cast.html (1, 6),
https://onnx.ai/onnx/operators/onnx__CastLike.html (15 and later),
https://onnx.ai/onnx/operators/onnx__Concat.html (1, 4).
"""

from __future__ import annotations

from onnx import NodeProto, TensorProto, helper, numpy_helper

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.registry import Outcome, lowers, raises
from reducelower.errors import RefusedError
from reducelower.model.attributes import attribute_of, set_attribute, value_of
from reducelower.model.schemas import parse_element_type
from reducelower.scope.scope import Scope


@raises("Cast", 6)
def _raise_name(node: NodeProto, scope: Scope) -> Outcome:
    """The name of an element type becomes its number."""
    name = value_of(node, "to")
    try:
        set_attribute(node, "to", parse_element_type(str(name)))
    except ValueError as error:
        raise RefusedError(str(error)) from error
    return None


@lowers("Cast", 6)
def _lower_number(node: NodeProto, scope: Scope) -> Outcome:
    """The number of an element type becomes its name, which shape inference does not read."""
    if scope.element_type(node.input[0]) == value_of(node, "to"):
        return Writer(node, scope).yields("Identity", node.input[0])
    scope.state_type(node.output[0])
    set_attribute(node, "to", TensorProto.DataType.Name(value_of(node, "to")))
    return None


@raises("Concat", 4)
def _raise_default_axis(node: NodeProto, scope: Scope) -> Outcome:
    """The axis was 1 unless given, and has to be given since."""
    if attribute_of(node, "axis") is not None:
        return None
    set_attribute(node, "axis", 1)
    return None


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
    marks = filter(None, (attribute_of(node, name) for name in ("saturate", "round_mode")))
    return body.yields("Cast", data, copied=marks, to=goal)
