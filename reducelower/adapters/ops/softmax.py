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
from reducelower.model.attributes import attribute_of
from reducelower.scope.scope import Scope

_OPERATORS = ("Hardmax", "LogSoftmax", "Softmax")


def _rank(op: Writer) -> int:
    found = op.scope.rank(op.node.output[0])
    return op.rank(0) if found is None else found


def _is_last(axis: int, rank: int, node: NodeProto, scope: Scope) -> bool:
    """Whether nothing but dimensions of size one follows the axis."""
    shape = scope.shape(node.input[0])
    return axis == rank - 1 or (shape is not None and all(size == 1 for size in shape[axis + 1 :]))


def _lower(op: Writer) -> Outcome:
    """Bring the axis to the end, where cutting there leaves only it."""
    axis = int(op.attribute("axis", -1))
    if axis == -1:
        if attribute_of(op.node, "axis") is None:
            op.set("axis", -1)
        return None
    rank = _rank(op)
    axis = from_the_front(axis, rank)
    if _is_last(axis, rank, op.node, op.scope):
        return None
    swapped = list(range(rank))
    swapped[axis], swapped[-1] = swapped[-1], swapped[axis]
    data = op.add("Transpose", op.input(0), tail="axis_last", perm=swapped)
    return op.yields("Transpose", op.add(op.node.op_type, data, axis=rank - 1), perm=swapped)


def _raise(op: Writer) -> Outcome:
    """Cut the input where it used to be cut, unless that is the last axis."""
    axis = int(op.attribute("axis", 1))
    if axis == -1:
        return None
    rank = op.scope.rank(op.input(0))
    if rank is not None and _is_last(from_the_front(axis, rank), rank, op.node, op.scope):
        if attribute_of(op.node, "axis") is None and axis != rank - 1:
            op.set("axis", axis)
        return None
    data = op.input(0)
    shape = op.scope.shape(data)
    if shape is not None and 0 in shape:
        return op.yields("Identity", data)
    matrix = op.add("Flatten", data, tail="matrix", axis=axis)
    if shape is not None and None not in shape:
        whole = op.integers(shape, "shape")
        return op.yields("Reshape", op.add(op.node.op_type, matrix, axis=-1), whole)
    whole = op.add("Shape", data)
    normalized = op.add(op.node.op_type, matrix, axis=-1)
    return op.yields_reshaped(normalized, whole, op.scope.needed_element_type(data))


for _op_type in _OPERATORS:
    lowers(_op_type, 13)(_lower)
    raises(_op_type, 13)(_raise)
