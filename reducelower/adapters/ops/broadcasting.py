"""Operators that came to broadcast by trailing dimensions at opsets 7 and 8.

Before opset 7 an attribute asked for it, and another said along which axis of A the dimensions of B lie. Before opset 8
Max, Mean, Min and Sum did not broadcast.

Sources: https://onnx.ai/onnx/operators/onnx__Add.html (6, 7), https://onnx.ai/onnx/operators/onnx__Sum.html (6, 8),
https://onnx.ai/onnx/operators/onnx__Gemm.html (6, 7), https://onnx.ai/onnx/operators/onnx__PRelu.html (6, 7).
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.registry import Outcome, lowers, raises
from reducelower.errors import RefusedError
from reducelower.model.attributes import drop_attribute, set_attribute, value_of
from reducelower.scope.scope import Scope

_BINARY = ("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor")
_COMMUTATIVE = ("Add", "And", "Equal", "Mul", "Or", "Xor")


def _raise(node: NodeProto, scope: Scope) -> Outcome:
    """Dimensions of B that lay before the last ones of A get ones behind them."""
    broadcast, axis = value_of(node, "broadcast", 0), value_of(node, "axis")
    drop_attribute(node, "broadcast")
    drop_attribute(node, "axis")
    if not broadcast or axis is None:
        return None
    shape = scope.shape(node.input[1])
    if shape is not None and all(size == 1 for size in shape):
        return None
    rank, other = scope.needed_rank(node.input[0]), scope.needed_rank(node.input[1])
    behind = rank - (axis + rank if axis < 0 else axis) - other
    if behind == 0:
        return None
    if behind < 0:
        raise RefusedError(f"its axis {axis} leaves no room for the {other} dimensions of {node.input[1]!r}")
    body = Writer(node, scope)
    aligned = body.add("Unsqueeze", node.input[1], tail="aligned", axes=list(range(other, other + behind)))
    return body.yields(node.op_type, node.input[0], aligned)


def _lower(node: NodeProto, scope: Scope) -> Outcome:
    """Shapes had to be equal, or B a run of A's dimensions."""
    names = list(node.input)
    if names[0] == names[1]:
        return None
    left, right = (scope.shape(name) for name in names)
    if left is None or right is None:
        raise RefusedError(
            "the shapes of its operands are not known, and broadcasting has to be asked for", "infer shapes first"
        )
    if left == right and None not in left:
        return None
    if len(right) > len(left) and node.op_type in _COMMUTATIVE:
        left, right = right, left
        del node.input[:]
        node.input.extend(reversed(names))
    known = None not in right and right == left[len(left) - len(right) :]
    if len(right) <= len(left) and (known or all(size == 1 for size in right)):
        set_attribute(node, "broadcast", 1)
        return None
    raise RefusedError(
        f"it broadcasts shapes {list(left)} and {list(right)}, of which neither is the end of the other",
        "opset 7 is the oldest that does",
    )


for _op_type in _BINARY:
    raises(_op_type, 7)(_raise)
    lowers(_op_type, 7)(_lower)


def _lower_many(node: NodeProto, scope: Scope) -> Outcome:
    """Equal shapes are taken as they are; sums are taken two by two."""
    shapes = [scope.shape(name) for name in node.input]
    first = shapes[0]
    if len(shapes) == 1 or (first is not None and None not in first and all(shape == first for shape in shapes)):
        return None
    if node.op_type in ("Max", "Min"):
        return _lower_extreme(node, scope)
    body = Writer(node, scope)
    total = node.input[0]
    for name in node.input[1:-1]:
        total = body.add("Add", total, name, tail="total")
    if node.op_type == "Sum":
        return body.yields("Add", total, node.input[-1])
    element_type = scope.needed_element_type(node.input[0])
    total = body.add("Add", total, node.input[-1], tail="total")
    return body.yields("Div", total, body.constant(len(node.input), element_type, "count"))


def _lower_extreme(node: NodeProto, scope: Scope) -> Outcome:
    """Max and Min of two: with a constant bound they are Clip, else both operands take on the common shape first."""
    if len(node.input) != 2 or scope.target_opset < 7:
        raise RefusedError(
            "its inputs are of different shapes, or of shapes not known", "opset 8 is the oldest that broadcasts them"
        )
    element_type = scope.needed_element_type(node.input[0])
    body = Writer(node, scope)
    for bound, data in ((1, 0), (0, 1)):
        value = scope.constant(node.input[bound])
        # Clip's bounds are attributes, which hold floats and nothing wider.
        if value is None or value.size != 1 or value.ndim > 1 or element_type == TensorProto.DOUBLE:
            continue
        # Nor does Clip add the dimension that a bound of one element has and a scalar lacks.
        if _reaches(node.input[data], value, scope):
            scope.release(node.input[bound])
            limit = float(value.reshape(-1)[0])
            low, high = (limit, np.inf) if node.op_type == "Max" else (-np.inf, limit)
            return body.yields("Clip", node.input[data], min=low, max=high)
    zeros = [
        body.add("Cast", body.add("Less", name, name, tail="false"), tail="zeros", to=element_type)
        for name in node.input
    ]
    zero = body.add("Add", *zeros, tail="common_shape")
    return body.yields(node.op_type, *(body.add("Add", name, zero, tail="spread") for name in node.input))


def _reaches(name: str, value: np.ndarray, scope: Scope) -> bool:
    """Whether a tensor is known to have at least as many dimensions as a constant."""
    return not value.ndim or (scope.rank(name) or 0) >= value.ndim


for _op_type in ("Max", "Mean", "Min", "Sum"):
    lowers(_op_type, 8)(_lower_many)


@raises("Gemm", 7)
def _raise_gemm(node: NodeProto, scope: Scope) -> Outcome:
    """C always broadcasts, and in more ways than could be asked for."""
    drop_attribute(node, "broadcast")
    return None


@lowers("Gemm", 7)
def _lower_gemm(node: NodeProto, scope: Scope) -> Outcome:
    """C had to be the result's shape, or its end where broadcasting was asked for."""
    shape, result = scope.shape(node.input[2]), scope.shape(node.output[0])
    if shape is not None and shape == result and None not in shape:
        return None
    if shape is not None and (len(shape) == 1 or all(size == 1 for size in shape)) and 1 not in shape[1:]:
        set_attribute(node, "broadcast", 1)
        return None
    raise RefusedError(
        f"its input C has shape {None if shape is None else list(shape)}, which opset 6 does not broadcast",
        "opset 7 is the oldest that does",
    )


@raises("PRelu", 7)
def _raise_prelu(node: NodeProto, scope: Scope) -> Outcome:
    """The slopes were one per channel; they are the second dimension now, and have no more dimensions than the data."""
    shape = scope.shape(node.input[1])
    if shape is not None and all(size == 1 for size in shape):
        rank = scope.rank(node.input[0])
        if rank is None or rank >= len(shape):
            return None
        body = Writer(node, scope)
        slope = body.add("Squeeze", node.input[1], tail="slope", axes=list(range(len(shape) - rank)))
        return body.yields("PRelu", node.input[0], slope)
    behind = scope.needed_rank(node.input[0]) - 2
    if behind <= 0 or scope.needed_rank(node.input[1]) != 1:
        return None
    body = Writer(node, scope)
    slopes = body.add("Unsqueeze", node.input[1], tail="per_channel", axes=list(range(1, 1 + behind)))
    return body.yields("PRelu", node.input[0], slopes)


@lowers("PRelu", 7)
def _lower_prelu(node: NodeProto, scope: Scope) -> Outcome:
    """The slopes were one per channel."""
    shape = scope.shape(node.input[1])
    if shape is None:
        raise RefusedError(f"the shape of {node.input[1]!r} is not known", "infer shapes first")
    if all(size == 1 for size in shape) and len(shape) <= 1:
        return None
    rank = scope.needed_rank(node.input[0])
    whole = [1] * (rank - len(shape)) + list(shape)
    if any(size != 1 for axis, size in enumerate(whole) if axis != 1):
        raise RefusedError(f"its slopes have shape {list(shape)}, not one per channel", "opset 7 is the oldest for it")
    if len(shape) == 1:
        return None
    body = Writer(node, scope)
    channel = 1 - (rank - len(shape))
    slopes = body.add(
        "Squeeze", node.input[1], tail="slopes", axes=[axis for axis in range(len(shape)) if axis != channel]
    )
    return body.yields("PRelu", node.input[0], slopes)
