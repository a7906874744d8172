"""Slice before opset 10, whose bounds are attributes and whose steps are all one; Range and Trilu, which count.

Sources: the pages of Slice (1, 10), Range (11, 27), Trilu (14).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, TensorProto, helper

from reducelower.adapters.builder import TO_THE_END, Writer
from reducelower.adapters.registry import Outcome, lowers
from reducelower.errors import RefusedError
from reducelower.model.attributes import make_node
from reducelower.rulebook.guards import from_the_front
from reducelower.scope.fold import places

__all__ = ["ramp"]

_INT64 = TensorProto.INT64


@lowers("Slice", 10)
def _lower(op: Writer) -> Outcome:
    """Constant bounds become attributes; other steps and computed bounds become a Gather of the places they name."""
    starts, ends, axes, steps = (op.constant_input(index) for index in (1, 2, 3, 4))
    if op.input(4) and steps is None:
        raise RefusedError("its steps are computed at run time", "opset 10 is the oldest that takes them so")
    plain = steps is None or bool((steps == 1).all())
    if op.input(3) and axes is None:
        return _along_computed_axes(op, is_plain=plain)
    if starts is not None and ends is not None and plain:
        if op.input(4):
            op.scope.release(op.input(4))
            del op.node.input[4:]
        return None
    count = _count(op, starts, ends, axes)
    where = list(range(count)) if axes is None else axes.reshape(-1).tolist()
    by = [1] * count if steps is None else steps.reshape(-1).tolist()
    bounds = [(_bound(op, number, 1, starts), _bound(op, number, 2, ends)) for number in range(count)]
    op.scope.release(*(name for name in op.node.input[1:] if name and op.scope.constant(name) is not None))
    return _cut(op, where, by, bounds)


def _cut(
    op: Writer, axes: Sequence[int], steps: Sequence[int], bounds: Sequence[tuple[int | str, int | str]]
) -> list[NodeProto]:
    """One Gather per axis."""
    if not len(axes) == len(steps) == len(bounds):
        raise RefusedError("its starts, ends, axes and steps are not of one length", "correct the model")
    data = op.input(0)
    for number, (axis, step, ends) in enumerate(zip(axes, steps, bounds, strict=True)):
        data = op.add("Gather", data, _places(op, data, axis, ends, step), tail=f"cut_{number}", axis=axis)
    return op.yields_value(data)


def _along_computed_axes(op: Writer, *, is_plain: bool) -> list[NodeProto]:
    """A cut along every axis; those that are not named keep everything."""
    node, scope = op.node, op.scope
    if not is_plain:
        raise RefusedError(
            "its axes are computed at run time and its steps are not 1", "opset 10 is the oldest that takes them so"
        )
    rank = scope.needed_rank(node.input[0])
    axes, *given = (op.add("Cast", node.input[index], tail="int64", to=_INT64) for index in (3, 1, 2))
    bounds = [
        op.add("Scatter", op.integers([nothing] * rank, "uncut"), axes, bound, tail="bounds", axis=0)
        for nothing, bound in zip((0, TO_THE_END), given, strict=True)
    ]
    each = [
        tuple(op.add("Gather", name, op.number(axis), tail=f"bound_{axis}", axis=0) for name in bounds)
        for axis in range(rank)
    ]
    return _cut(op, range(rank), [1] * rank, [(start, end) for start, end in each])


def _count(op: Writer, *values: np.ndarray | None) -> int:
    for value in values:
        if value is not None:
            return int(value.size)
    shape = op.shape(1) or op.shape(2)
    if shape is None or shape[0] is None:
        raise RefusedError("how many axes it cuts is not known", "opset 10 is the oldest that takes computed bounds")
    return shape[0]


def _bound(op: Writer, number: int, index: int, value: np.ndarray | None) -> int | str:
    """One bound: a number where it is constant, else the name of a tensor of one int64."""
    if value is not None:
        return int(value.reshape(-1)[number])
    name = op.input(index)
    if op.scope.element_type(name) != _INT64:
        name = op.add("Cast", name, tail="bound", to=_INT64)
    if op.scope.shape(name) == (1,):
        return name
    return op.add("Gather", name, op.number(number), tail=f"bound_{number}", axis=0)


def ramp(op: Writer, length: str) -> str:
    """The numbers from zero up to a length that is a tensor of one int64."""
    if op.scope.target_opset < _FINDS_PLACES:
        return _counted_in_loop(op, length)
    ones = op.add("ConstantOfShape", length, tail="ones", value=helper.make_tensor("one", _INT64, [1], [1]))
    return op.add("Reshape", op.add("NonZero", ones), op.number(-1), tail="ramp")


_FINDS_PLACES = 9
"""The opset version since which ConstantOfShape and NonZero make a ramp."""


def _counted_in_loop(op: Writer, length: str) -> str:
    """The number of each iteration; at least one value has to be carried there."""
    at, goes_on, given, still, carried, number = map(op.fresh, ("at", "goes_on", "given", "still", "carried", "number"))
    nodes = [make_node("Identity", [one], [other]) for one, other in ((at, number), (goes_on, still), (given, carried))]
    inputs = [(at, _INT64, ()), (goes_on, TensorProto.BOOL, ()), (given, _INT64, ())]
    outputs = [(still, TensorProto.BOOL, ()), (carried, _INT64, ()), (number, _INT64, ())]
    graph = op.graph("numbers", nodes, inputs, outputs)
    zero = op.constant(0, _INT64, "zero")
    return op.add_many("Loop", [length, "", zero], ("last", "ramp"), body=graph)[1]


def _places(op: Writer, data: str, axis: int, bounds: tuple[int | str, int | str], step: int) -> str:
    """The places along an axis that a slice takes, as the specification clamps them."""
    shape = op.scope.shape(data)
    size = None if shape is None else shape[from_the_front(axis, len(shape))]
    start, end = bounds
    if size is not None and isinstance(start, int) and isinstance(end, int):
        found = places(start, end, step, size)
        op.make_room(len(found))
        return op.integers(found, "places")
    if axis < 0:
        raise RefusedError(f"it cuts along axis {axis} of a tensor whose rank is not known")
    length = op.add("Gather", op.add("Shape", data), op.number(axis), tail="size", axis=0)
    lowest, highest = op.number(0 if step > 0 else -1), length
    if step < 0:
        highest = op.add("Sub", length, op.number(1), tail="last")
    first = _clamped(op, start, length, lowest if step > 0 else op.number(0), highest)
    past = _clamped(op, end, length, lowest, highest)
    span = op.add("Sub", past, first, tail="span")
    if step != 1:
        # Rounded up: the number of steps that fit.
        rounding = op.add("Add", span, op.number(step - (1 if step > 0 else -1)), tail="rounding")
        span = op.add("Div", rounding, op.number(step), tail="steps")
    span = _larger(op, span, op.number(0))
    steps = ramp(op, span)
    if step != 1:
        steps = op.add("Mul", steps, op.number(step), tail="spread")
    return op.add("Add", steps, first, tail="places")


def _clamped(op: Writer, bound: int | str, length: str, lowest: str, highest: str) -> str:
    if isinstance(bound, int):
        if bound == 0:
            return lowest if lowest == op.number(0) else op.number(0)
        bound = max(min(bound, 2**62), -(2**62))
        name = op.number(bound)
        counted = name if bound >= 0 else op.add("Add", name, length, tail="counted")
    else:
        name = bound
        below = op.add("Less", name, op.number(0), tail="below")
        counted = op.add("Where", below, op.add("Add", name, length, tail="shifted"), name, tail="counted")
    larger = _larger(op, counted, lowest)
    return op.add("Where", op.add("Less", larger, highest), larger, highest, tail="smaller")


def _larger(op: Writer, one: str, other: str) -> str:
    return op.add("Where", op.add("Less", one, other), other, one, tail="larger")
