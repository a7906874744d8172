"""Softmax, LogSoftmax and Hardmax at opset 13.

Before, the input was taken as a matrix of two dimensions, cut at axis (default 1), and normalized over everything from
axis on; since then over that one axis (default -1). The two agree where axis is the last one.

Source: https://onnx.ai/onnx/operators/onnx__Softmax.html (11, 13).
"""

from __future__ import annotations

from onnx import NodeProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.ops.axes import from_the_front
from reducelower.adapters.registry import Outcome, lowers, raises
from reducelower.model.attributes import attribute_of, set_attribute, value_of
from reducelower.scope.scope import Scope

_OPERATORS = ("Hardmax", "LogSoftmax", "Softmax")


def _rank(node: NodeProto, scope: Scope) -> int:
    found = scope.rank(node.output[0])
    return scope.needed_rank(node.input[0]) if found is None else found


def _is_last(axis: int, rank: int, node: NodeProto, scope: Scope) -> bool:
    """Whether nothing but dimensions of size one follows the axis."""
    shape = scope.shape(node.input[0])
    return axis == rank - 1 or (shape is not None and all(size == 1 for size in shape[axis + 1 :]))


def _lower(node: NodeProto, scope: Scope) -> Outcome:
    """Bring the axis to the end, where cutting there leaves only it."""
    axis = int(value_of(node, "axis", -1))
    if axis == -1:
        if attribute_of(node, "axis") is None:
            set_attribute(node, "axis", -1)
        return None
    rank = _rank(node, scope)
    axis = from_the_front(axis, rank)
    if _is_last(axis, rank, node, scope):
        return None
    swapped = list(range(rank))
    swapped[axis], swapped[-1] = swapped[-1], swapped[axis]
    body = Writer(node, scope)
    data = body.add("Transpose", node.input[0], tail="axis_last", perm=swapped)
    return body.yields("Transpose", body.add(node.op_type, data, axis=rank - 1), perm=swapped)


def _raise(node: NodeProto, scope: Scope) -> Outcome:
    """Cut the input where it used to be cut, unless that is the last axis."""
    axis = int(value_of(node, "axis", 1))
    if axis == -1:
        return None
    rank = scope.rank(node.input[0])
    if rank is not None and _is_last(from_the_front(axis, rank), rank, node, scope):
        if attribute_of(node, "axis") is None and axis != rank - 1:
            set_attribute(node, "axis", axis)
        return None
    data = node.input[0]
    body = Writer(node, scope)
    shape = scope.shape(data)
    if shape is not None and 0 in shape:
        return body.yields("Identity", data)
    matrix = body.add("Flatten", data, tail="matrix", axis=axis)
    if shape is not None and None not in shape:
        whole = body.integers(shape, "shape")
        return body.yields("Reshape", body.add(node.op_type, matrix, axis=-1), whole)
    whole = body.add("Shape", data)
    normalized = body.add(node.op_type, matrix, axis=-1)
    return body.yields_reshaped(normalized, whole, scope.needed_element_type(data))


for _op_type in _OPERATORS:
    lowers(_op_type, 13)(_lower)
    raises(_op_type, 13)(_raise)
