"""Slice before opset 10, where bounds are attributes and every step is one.

Source: https://onnx.ai/onnx/operators/onnx__Slice.html (1, 10).
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto, helper

from reducelower.adapters.builder import Writer
from reducelower.adapters.ops.axes import from_the_front
from reducelower.adapters.registry import Outcome, lowers
from reducelower.errors import RefusedError
from reducelower.scope.scope import Scope

__all__ = ["ramp"]

_INT64 = TensorProto.INT64


@lowers("Slice", 10)
def _lower(node: NodeProto, scope: Scope) -> Outcome:
    """Constant bounds become attributes; other steps and computed bounds become a Gather of the places they name."""
    body = Writer(node, scope)
    starts, ends, axes, steps = (body.constant_input(index) for index in (1, 2, 3, 4))
    for index, value, said in ((3, axes, "axes"), (4, steps, "steps")):
        if body.input(index) and value is None:
            raise RefusedError(f"its {said} are computed at run time", "opset 10 is the oldest that takes them so")
    plain = steps is None or (steps == 1).all()
    if starts is not None and ends is not None and plain:
        if body.input(4):
            scope.release(node.input[4])
            del node.input[4:]
            return True
        return False
    count = _count(node, scope, starts, ends, axes)
    where = list(range(count)) if axes is None else axes.reshape(-1).tolist()
    by = [1] * count if steps is None else steps.reshape(-1).tolist()
    data = node.input[0]
    for number, (axis, step) in enumerate(zip(where, by, strict=True)):
        bounds = [_bound(body, number, index, value) for index, value in ((1, starts), (2, ends))]
        last = number == count - 1
        places = _places(body, data, axis, bounds, step)
        if last:
            body.yields("Gather", data, places, axis=axis)
        else:
            data = body.add("Gather", data, places, tail=f"cut_{number}", axis=axis)
    for name in node.input[1:]:
        if name and scope.constant(name) is not None:
            scope.release(name)
    return body.nodes if count else body.yields("Identity", data)


def _count(node: NodeProto, scope: Scope, *values: np.ndarray | None) -> int:
    for value in values:
        if value is not None:
            return int(value.size)
    shape = scope.shape(node.input[1]) or scope.shape(node.input[2])
    if shape is None or shape[0] is None:
        raise RefusedError("how many axes it cuts is not known", "opset 10 is the oldest that takes computed bounds")
    return shape[0]


def _bound(body: Writer, number: int, index: int, value: np.ndarray | None) -> int | str:
    """One bound: a number where it is constant, else the name of a tensor of one int64."""
    if value is not None:
        return int(value.reshape(-1)[number])
    name = body.input(index)
    if body.scope.element_type(name) != _INT64:
        name = body.add("Cast", name, tail="bound", to=_INT64)
    if body.scope.shape(name) == (1,):
        return name
    return body.add("Gather", name, body.number(number), tail=f"bound_{number}", axis=0)


def ramp(body: Writer, length: str) -> str:
    """The numbers from zero up to a length that is a tensor of one int64."""
    ones = body.add("ConstantOfShape", length, tail="ones", value=helper.make_tensor("one", _INT64, [1], [1]))
    return body.add("Reshape", body.add("NonZero", ones), body.number(-1), tail="ramp")


def _places(body: Writer, data: str, axis: int, bounds: list[int | str], step: int) -> str:
    """The places along an axis that a slice takes, as the specification clamps them."""
    shape = body.scope.shape(data)
    size = None if shape is None else shape[from_the_front(axis, len(shape))]
    start, end = bounds
    if size is not None and isinstance(start, int) and isinstance(end, int):
        return body.constant(range(*slice(start, end, step).indices(size)), _INT64, "places")
    if axis < 0:
        raise RefusedError(f"it cuts along axis {axis} of a tensor whose rank is not known")
    length = body.add("Gather", body.add("Shape", data), body.number(axis), tail="size", axis=0)
    lowest, highest = body.number(0 if step > 0 else -1), length
    if step < 0:
        highest = body.add("Sub", length, body.number(1), tail="last")
    first = _clamped(body, start, length, lowest if step > 0 else body.number(0), highest)
    past = _clamped(body, end, length, lowest, highest)
    span = body.add("Sub", past, first, tail="span")
    if step != 1:
        # Rounded up: the number of steps that fit.
        rounding = body.add("Add", span, body.number(step - (1 if step > 0 else -1)), tail="rounding")
        span = body.add("Div", rounding, body.number(step), tail="steps")
    span = _larger(body, span, body.number(0))
    places = ramp(body, span)
    if step != 1:
        places = body.add("Mul", places, body.number(step), tail="spread")
    return body.add("Add", places, first, tail="places")


def _clamped(body: Writer, bound: int | str, length: str, lowest: str, highest: str) -> str:
    if isinstance(bound, int):
        if bound == 0:
            return lowest if lowest == body.number(0) else body.number(0)
        bound = max(min(bound, 2**62), -(2**62))
        name = body.number(bound)
        counted = name if bound >= 0 else body.add("Add", name, length, tail="counted")
    else:
        name = bound
        below = body.add("Less", name, body.number(0), tail="below")
        counted = body.add("Where", below, body.add("Add", name, length, tail="shifted"), name, tail="counted")
    return _smaller(body, _larger(body, counted, lowest), highest)


def _larger(body: Writer, one: str, other: str) -> str:
    return body.add("Where", body.add("Less", one, other), other, one, tail="larger")


def _smaller(body: Writer, one: str, other: str) -> str:
    return body.add("Where", body.add("Less", one, other), one, other, tail="smaller")
