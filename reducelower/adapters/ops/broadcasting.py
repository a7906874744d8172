"""Max, Mean, Min and Sum before opset 8, where they did not broadcast; not text, since they take any number of inputs.

Source: the page of Sum (6, 8).
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.registry import Outcome, lowers
from reducelower.errors import RefusedError
from reducelower.scope.scope import Scope


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
