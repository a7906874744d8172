"""TopK, ArgMax and ArgMin: what asks for the other end of the order.

Sources: https://onnx.ai/onnx/operators/onnx__TopK.html (10, 11),
https://onnx.ai/onnx/operators/onnx__ArgMax.html (11, 12).
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto, helper

from reducelower.adapters.builder import Writer
from reducelower.adapters.ops.axes import from_the_front
from reducelower.adapters.registry import Outcome, lowers, raises
from reducelower.model.attributes import attribute_of, drop_attribute, set_attribute, value_of
from reducelower.scope.scope import Scope

__all__: list[str] = []

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)


def _opposite(body: Writer, data: str, element_type: int) -> tuple[str, list[str]]:
    """What reverses the order of data, and back again: -x, or for integers -1 - x, which cannot overflow."""
    if element_type in _FLOATS:
        return "Neg", [data]
    dtype = helper.tensor_dtype_to_np_dtype(element_type)
    highest = -1 if dtype.kind == "i" else int(np.iinfo(dtype).max)
    return "Sub", [body.constant(highest, element_type, "highest"), data]


@lowers("TopK", 11)
def _lower_top_k(node: NodeProto, scope: Scope) -> Outcome:
    """Smallest first is largest first of the opposite; ties go to the lower index both ways."""
    changed = False
    axis = int(value_of(node, "axis", -1))
    if axis < -1:
        set_attribute(node, "axis", from_the_front(axis, scope.needed_rank(node.input[0])))
        changed = True
    if value_of(node, "largest", 1):
        return changed
    body = Writer(node, scope)
    element_type = scope.needed_element_type(node.input[0])
    reverse, operands = _opposite(body, node.input[0], element_type)
    opposite = body.add(reverse, *operands, tail="opposite")
    axis = int(value_of(node, "axis", -1))
    values, _ = body.add_many("TopK", [opposite, node.input[1]], ["values", "places"], axis=axis)
    if body.wants(1):
        body.nodes[-1].output[1] = node.output[1]
    if body.wants(0):
        reverse, operands = _opposite(body, values, element_type)
        body.yields(reverse, *operands)
    return body.nodes


@lowers("TopK", 10)
def _lower_none(node: NodeProto, scope: Scope) -> Outcome:
    """Before 10 at least one element was asked for; none of them is an empty slice."""
    count = scope.constant(node.input[1])
    if count is None or count.reshape(-1)[0] > 0:
        return False
    body = Writer(node, scope)
    axis = int(value_of(node, "axis", -1))
    if axis < 0:
        axis = from_the_front(axis, scope.needed_rank(node.input[0]))
    if body.wants(1):
        empty = body.add("Slice", node.input[0], tail="none", starts=[0], ends=[0], axes=[axis])
        body.yields("Cast", empty, output=1, to=TensorProto.INT64)
    if body.wants(0):
        body.yields("Slice", node.input[0], starts=[0], ends=[0], axes=[axis])
    return body.nodes


@raises("TopK", 10)
def _raise_k(node: NodeProto, scope: Scope) -> Outcome:
    """An attribute of the function around comes as a scalar, and the input K is a list of one number."""
    k = attribute_of(node, "k")
    if k is None or not k.ref_attr_name:
        return False
    body = Writer(node, scope)
    scalar = scope.add_reference(k, "value_int", "k")
    listed = body.add("Reshape", scalar, body.constant([1], TensorProto.INT64, "one"), tail="K")
    drop_attribute(node, "k")
    node.input.append(listed)
    return [*body.nodes, node]


def _lower_last_index(node: NodeProto, scope: Scope) -> Outcome:
    """The last of equal ones is the first counted from the back."""
    if not value_of(node, "select_last_index", 0):
        return False
    body = Writer(node, scope)
    data, axis = node.input[0], int(value_of(node, "axis", 0))
    shape = scope.shape(data)
    if axis < 0:
        axis = from_the_front(axis, scope.needed_rank(data))
    int64 = TensorProto.INT64
    bounds = [body.constant([bound], int64, tail) for bound, tail in (
        (-1, "from_the_last"), (-(2**63), "to_the_first"), (axis, f"axis_{axis}"), (-1, "from_the_last")
    )]  # fmt: skip
    backward = body.add("Slice", data, *bounds, tail="backward")
    keepdims = int(value_of(node, "keepdims", 1))
    place = body.add(node.op_type, backward, tail="place", axis=axis, keepdims=keepdims)
    size = None if shape is None else shape[axis]
    if size is not None:
        last = body.constant(size - 1, int64, f"last_{size - 1}")
    else:
        length = body.add("Gather", body.add("Shape", data), body.constant(axis, int64, "axis"), tail="size", axis=0)
        last = body.add("Sub", length, body.constant(1, int64, "one"), tail="last")
    return body.yields("Sub", last, place)


lowers("ArgMax", 12)(_lower_last_index)
lowers("ArgMin", 12)(_lower_last_index)
