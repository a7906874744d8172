"""Resize for sizes that are known only at run time, where coordinates, neighbours and weights are computed.

Along each axis, the neighbours of every coordinate are gathered and added by weight. The arithmetic is that of the
operator's page, in float32 and in the same order, as in runtimes.

Source: the page of Resize (11 to 19).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from onnx import NodeProto, TensorProto, helper

from reducelower.adapters.builder import Writer
from reducelower.adapters.ops.interpolation import widened
from reducelower.model.attributes import value_of

__all__ = ["can_interpolate_at_run_time", "interpolate_at_run_time"]

_FLOAT, _INT64 = TensorProto.FLOAT, TensorProto.INT64


@dataclass(frozen=True)
class _Axis:
    """Values of an axis at run time, as float32: its sizes before and after, the scale, the indices of the result."""

    before: str
    after: str
    scale: str
    places: str


def can_interpolate_at_run_time(node: NodeProto, *, knows_scales: bool) -> bool:
    """Whether the modes of a node can be written out for sizes that are known only at run time.

    An axis that keeps its size must not change. Only tf_half_pixel_for_nn would shift it, unless it rounds down, so
    then the scales have to tell which axes keep their size.
    """
    transformation = value_of(node, "coordinate_transformation_mode", "half_pixel")
    if transformation not in _COORDINATES or value_of(node, "antialias", 0) or value_of(node, "exclude_outside", 0):
        return False
    if transformation == "tf_half_pixel_for_nn" and not knows_scales:
        is_nearest = value_of(node, "mode", "nearest") == "nearest"
        rounding = value_of(node, "nearest_mode", "round_prefer_floor")
        return bool(is_nearest and rounding in ("floor", "round_prefer_floor"))
    return True


def interpolate_at_run_time(op: Writer, axes: list[int], scales: str, sizes: str) -> list[NodeProto]:
    """The nodes for opset 9 that do what a Resize of opset 11 or later does along some axes.

    The axes are counted from the front. Scales or sizes are those of all axes; the other name is empty.
    """
    mode = op.attribute("mode", "nearest")
    transformation = op.attribute("coordinate_transformation_mode", "half_pixel")
    data, wide = widened(op)
    rank = op.rank(0)
    for place in axes:
        axis = _axis(op, data, place, scales, sizes)
        coordinate = _COORDINATES[transformation](op, axis)
        if mode == "nearest":
            data = _gathered(op, data, _nearest(op, coordinate, axis), place)
        else:
            data = _weighted(op, data, coordinate, axis, place, rank, wide)
    return op.yields_cast(data, wide, op.element_type(0))


def _number(op: Writer, value: float) -> str:
    return op.constant([value], _FLOAT, "number")


def _axis(op: Writer, data: str, place: int, scales: str, sizes: str) -> _Axis:
    where = op.integers([place], f"axis_{place}")
    before = op.add("Gather", op.add("Shape", data), where, tail="size", axis=0)
    before = op.add("Cast", before, tail="before", to=_FLOAT)
    if sizes:
        length = op.add("Gather", sizes, where, tail="length", axis=0)
        after = op.add("Cast", length, tail="after", to=_FLOAT)
        scale = op.add("Div", after, before, tail="scale")
    else:
        scale = op.add("Gather", scales, where, tail="scale", axis=0)
        after = op.add("Floor", op.add("Mul", before, scale, tail="scaled"), tail="after")
        length = op.add("Cast", after, tail="length", to=_INT64)
    return _Axis(before, after, scale, op.add("Cast", _ramp(op, length), tail="place", to=_FLOAT))


def _ramp(op: Writer, length: str) -> str:
    """The integers from zero up to a length, which is a tensor of one int64."""
    ones = op.add("ConstantOfShape", length, tail="ones", value=helper.make_tensor("one", _INT64, [1], [1]))
    return op.add("Reshape", op.add("NonZero", ones), op.number(-1), tail="ramp")


def _shifted(op: Writer, axis: _Axis) -> str:
    return op.add("Div", op.add("Add", axis.places, _number(op, 0.5), tail="middle"), axis.scale, tail="shifted")


def _half_pixel(op: Writer, axis: _Axis) -> str:
    return op.add("Sub", _shifted(op, axis), _number(op, 0.5), tail="coordinate")


def _pytorch_half_pixel(op: Writer, axis: _Axis) -> str:
    """Half-pixel coordinates, but zero if the axis has a single result."""
    several = op.add("Cast", op.add("Less", _number(op, 1), axis.after), tail="several", to=_FLOAT)
    return op.add("Mul", _half_pixel(op, axis), several, tail="coordinate")


def _align_corners(op: Writer, axis: _Axis) -> str:
    one = _number(op, 1)
    reach = op.add("Mul", axis.places, op.add("Sub", axis.before, one, tail="last"), tail="reach")
    steps = op.add("Max", op.add("Sub", axis.after, one, tail="steps"), one, tail="at_least_one")
    return op.add("Div", reach, steps, tail="coordinate")


_COORDINATES: Mapping[str, Callable[[Writer, _Axis], str]] = {
    "half_pixel": _half_pixel,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "align_corners": _align_corners,
    "asymmetric": lambda op, axis: op.add("Div", axis.places, axis.scale, tail="coordinate"),
    "tf_half_pixel_for_nn": _shifted,
}


def _nearest(op: Writer, coordinate: str, axis: _Axis) -> str:
    mode = op.attribute("nearest_mode", "round_prefer_floor")
    if mode == "round_prefer_floor":
        coordinate = op.add("Sub", coordinate, _number(op, 0.5), tail="lower")
    elif mode == "round_prefer_ceil":
        coordinate = op.add("Add", coordinate, _number(op, 0.5), tail="higher")
    whole = op.add("Ceil" if mode in ("round_prefer_floor", "ceil") else "Floor", coordinate, tail="nearest")
    return _clamped(op, whole, axis.before, partial(_number, op))


def _gathered(op: Writer, data: str, places: str, place: int) -> str:
    indices = op.add("Cast", places, tail="indices", to=_INT64)
    return op.add("Gather", data, indices, tail=f"resized_{place}", axis=place)


def _weighted(op: Writer, data: str, coordinate: str, axis: _Axis, place: int, rank: int, element_type: int) -> str:
    """The weighted sum of the neighbours: two in mode linear, four in mode cubic."""
    linear, number = op.attribute("mode", "nearest") == "linear", partial(_number, op)
    if linear:
        coordinate = _clamped(op, coordinate, axis.before, number)
    first = op.add("Floor", coordinate, tail="first")
    rest = op.add("Sub", coordinate, first, tail="fraction")
    if linear:
        weights = _linear_weights(op, rest, number)
    else:
        weights = _cubic_weights(op, rest, float(op.attribute("cubic_coeff_a", -0.75)), number)
    total = ""
    for step, weight in weights.items():
        tap = op.add("Add", first, number(step), tail="tap") if step else first
        tap = _clamped(op, tap, axis.before, number)
        column = op.integers([-1] + [1] * (rank - 1 - place), "column")
        if element_type != _FLOAT:
            weight = op.add("Cast", weight, tail="weight", to=element_type)
        weight = op.add("Reshape", weight, column, tail="weights")
        term = op.add("Mul", _gathered(op, data, tap, place), weight, tail="term")
        total = op.add("Add", total, term, tail=f"resized_{place}") if total else term
    return total


_Number: TypeAlias = Callable[[float], str]
"""Makes a constant in the element type and rank that the filter is computed in, and returns its name."""


def _linear_weights(op: Writer, rest: str, number: _Number) -> dict[int, str]:
    """The weights of the element before the coordinate and of the next one."""
    return {0: op.add("Sub", number(1.0), rest, tail="weight"), 1: rest}


def _cubic_weights(op: Writer, rest: str, a: float, number: _Number) -> dict[int, str]:
    """Keys' convolution kernel at the four neighbours; https://ieeexplore.ieee.org/document/1163711."""
    other = op.add("Sub", number(1.0), rest, tail="other")
    far, near = (a, -5 * a, 8 * a, -4 * a), (a + 2, -(a + 3), 0.0, 1.0)
    return {
        -1: _polynomial(op, op.add("Add", rest, number(1.0), tail="distance"), far, number),
        0: _polynomial(op, rest, near, number),
        1: _polynomial(op, other, near, number),
        2: _polynomial(op, op.add("Add", other, number(1.0), tail="distance"), far, number),
    }


def _polynomial(op: Writer, x: str, coefficients: Sequence[float], number: _Number) -> str:
    value = op.add("Mul", x, number(coefficients[0]), tail="power")
    for coefficient in coefficients[1:-1]:
        value = op.add("Mul", op.add("Add", value, number(coefficient), tail="sum"), x, tail="power")
    return op.add("Add", value, number(coefficients[-1]), tail="weight")


def _clamped(op: Writer, place: str, length: str, number: _Number) -> str:
    """A position limited to an axis of this length."""
    last = op.add("Sub", length, number(1.0), tail="last")
    return op.add("Min", op.add("Max", place, number(0.0), tail="from_first"), last, tail="inside")
