"""Operators that came to broadcast by trailing dimensions at opsets 7 and 8.

Before opset 7 an attribute asked for it, and another said along which axis of A the dimensions of B lie. Before opset 8
Max, Mean, Min and Sum did not broadcast.

Sources: the pages of Add (6, 7), Sum (6, 8), Gemm (6, 7), PRelu (6, 7).
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.registry import Outcome, lowers, raises
from reducelower.errors import RefusedError
from reducelower.model.text import shape_text
from reducelower.scope.scope import Scope

_BINARY = ("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor")
_COMMUTATIVE = ("Add", "And", "Equal", "Mul", "Or", "Xor")


def _raise(op: Writer) -> Outcome:
    """Dimensions of B that lay before the last ones of A get ones behind them."""
    broadcast, axis = op.attribute("broadcast", 0), op.attribute("axis")
    op.drop("broadcast")
    op.drop("axis")
    if not broadcast or axis is None:
        return None
    shape = op.shape(1)
    if shape is not None and all(size == 1 for size in shape):
        return None
    rank, other = op.rank(0), op.rank(1)
    behind = rank - (axis + rank if axis < 0 else axis) - other
    if behind == 0:
        return None
    if behind < 0:
        raise RefusedError(f"its axis {axis} leaves no room for the {other} dimensions of {op.input(1)!r}")
    aligned = op.add("Unsqueeze", op.input(1), tail="aligned", axes=list(range(other, other + behind)))
    return op.yields(op.node.op_type, op.input(0), aligned)


def _lower(op: Writer) -> None:
    """Shapes had to be equal, or B a run of A's dimensions."""
    names = list(op.node.input)
    if names[0] == names[1]:
        return
    left, right = (op.scope.shape(name) for name in names)
    if left is None or right is None:
        raise RefusedError(
            "the shapes of its operands are not known, and broadcasting has to be asked for", "infer shapes first"
        )
    if left == right and None not in left:
        return
    if len(right) > len(left) and op.node.op_type in _COMMUTATIVE:
        left, right = right, left
        del op.node.input[:]
        op.node.input.extend(reversed(names))
    known = None not in right and right == left[len(left) - len(right) :]
    if len(right) <= len(left) and (known or all(size == 1 for size in right)):
        op.set("broadcast", 1)
        return
    raise RefusedError(
        f"it broadcasts shapes {shape_text(left)} and {shape_text(right)}, and neither is the end of the other",
        "opset 7 is the oldest that does",
    )


for _op_type in _BINARY:
    raises(_op_type, 7)(_raise)
    lowers(_op_type, 7)(_lower)


def _lower_many(op: Writer) -> Outcome:
    """Equal shapes are taken as they are; sums are taken two by two."""
    shapes = [op.scope.shape(name) for name in op.node.input]
    first = shapes[0]
    if len(shapes) == 1 or (first is not None and None not in first and all(shape == first for shape in shapes)):
        return None
    if op.node.op_type in ("Max", "Min"):
        return _lower_extreme(op)
    total = op.input(0)
    for name in op.node.input[1:-1]:
        total = op.add("Add", total, name, tail="total")
    if op.node.op_type == "Sum":
        return op.yields("Add", total, op.node.input[-1])
    element_type = op.element_type(0)
    total = op.add("Add", total, op.node.input[-1], tail="total")
    return op.yields("Div", total, op.constant(len(op.node.input), element_type, "count"))


def _lower_extreme(op: Writer) -> Outcome:
    """Max and Min of two: with a constant bound they are Clip, else both operands take on the common shape first."""
    if len(op.node.input) != 2 or op.scope.target_opset < 7:
        # At opset 7 two of them take on their common shape by Add, which broadcasts from there on.
        oldest = 7 if len(op.node.input) == 2 else 8
        raise RefusedError(
            "its inputs are of different shapes, or of shapes not known",
            f"opset {oldest} is the oldest for which it can be written",
        )
    element_type = op.element_type(0)
    for bound, data in ((1, 0), (0, 1)):
        value = op.scope.constant(op.node.input[bound])
        # Clip's bounds are attributes, which hold floats and nothing wider.
        if value is None or value.size != 1 or value.ndim > 1 or element_type == TensorProto.DOUBLE:
            continue
        # Nor does Clip add the dimension that a bound of one element has and a scalar lacks.
        if _reaches(op.node.input[data], value, op.scope):
            op.scope.release(op.node.input[bound])
            limit = float(value.reshape(-1)[0])
            low, high = (limit, np.inf) if op.node.op_type == "Max" else (-np.inf, limit)
            return op.yields("Clip", op.node.input[data], min=low, max=high)
    zeros = [
        op.add("Cast", op.add("Less", name, name, tail="false"), tail="zeros", to=element_type)
        for name in op.node.input
    ]
    zero = op.add("Add", *zeros, tail="common_shape")
    return op.yields(op.node.op_type, *(op.add("Add", name, zero, tail="spread") for name in op.node.input))


def _reaches(name: str, value: np.ndarray, scope: Scope) -> bool:
    """Whether a tensor is known to have at least as many dimensions as a constant."""
    return not value.ndim or (scope.rank(name) or 0) >= value.ndim


for _op_type in ("Max", "Mean", "Min", "Sum"):
    lowers(_op_type, 8)(_lower_many)


@lowers("Gemm", 7)
def _lower_gemm(op: Writer) -> None:
    """C had to be the result's shape, or its end where broadcasting was asked for."""
    shape, result = op.shape(2), op.scope.shape(op.node.output[0])
    if shape is not None and shape == result and None not in shape:
        return
    if shape is not None and (len(shape) == 1 or all(size == 1 for size in shape)) and 1 not in shape[1:]:
        op.set("broadcast", 1)
        return
    raise RefusedError(
        f"its input C has shape {None if shape is None else list(shape)}, which opset 6 does not broadcast",
        "opset 7 is the oldest that does",
    )


@raises("PRelu", 7)
def _raise_prelu(op: Writer) -> Outcome:
    """The slopes were one per channel; they are the second dimension now, and have no more dimensions than the data."""
    shape = op.shape(1)
    if shape is not None and all(size == 1 for size in shape):
        rank = op.scope.rank(op.input(0))
        if rank is None or rank >= len(shape):
            return None
        slope = op.add("Squeeze", op.input(1), tail="slope", axes=list(range(len(shape) - rank)))
        return op.yields("PRelu", op.input(0), slope)
    behind = op.rank(0) - 2
    if behind <= 0 or op.rank(1) != 1:
        return None
    slopes = op.add("Unsqueeze", op.input(1), tail="per_channel", axes=list(range(1, 1 + behind)))
    return op.yields("PRelu", op.input(0), slopes)


@lowers("PRelu", 7)
def _lower_prelu(op: Writer) -> Outcome:
    """The slopes were one per channel."""
    shape = op.shape(1)
    if shape is None:
        raise RefusedError(f"the shape of {op.input(1)!r} is not known", "infer shapes first")
    if all(size == 1 for size in shape) and len(shape) <= 1:
        return None
    rank = op.rank(0)
    whole = [1] * (rank - len(shape)) + list(shape)
    if any(size != 1 for axis, size in enumerate(whole) if axis != 1):
        raise RefusedError(f"its slopes have shape {list(shape)}, not one per channel", "opset 7 is the oldest for it")
    if len(shape) == 1:
        return None
    channel = 1 - (rank - len(shape))
    slopes = op.add("Squeeze", op.input(1), tail="slopes", axes=[axis for axis in range(len(shape)) if axis != channel])
    return op.yields("PRelu", op.input(0), slopes)
