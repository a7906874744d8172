"""Operands and attributes of composed operators."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from onnx import NodeProto, TensorProto, helper

from reducelower.recompose.expressions import AXES_ARE_INPUT, is_near
from reducelower.recompose.place import Place

__all__ = [
    "NotItError",
    "check_number",
    "epsilon_of",
    "reduction",
    "refuse_double",
    "sizes_of",
    "trailing",
    "vector",
]


class NotItError(Exception):
    """A match is not the operator."""


def epsilon_of(place: Place) -> float:
    """The epsilon, from an attribute or a constant."""
    if "epsilon" in place.match.attributes:
        return float(place.match.attributes["epsilon"])
    value = place.graph.constant(place.values.get("epsilon"))
    if value is None or value.size != 1 or value.ndim > (place.graph.rank(place.data) or 0):
        raise NotItError
    number = float(value.reshape(()))
    if not number >= 0:
        raise NotItError
    return number


def refuse_double(place: Place) -> None:
    """Refuse forms that compute in double, which the operator's stash_type does not have."""
    kind = place.graph.element_type(place.data)
    widened = kind == TensorProto.FLOAT and any(
        place.graph.element_type(value) == TensorProto.DOUBLE
        for value in sorted(place.match.nodes)
        if (made := place.graph.made(value)) is not None and made.op_type == "Cast"
    )
    if kind == TensorProto.DOUBLE or widened:
        raise NotItError


def trailing(place: Place) -> int:
    """The number of axes; raises if they are not the last ones."""
    rank, axes = place.graph.rank(place.data), place.axes
    last = range(-len(axes), 0) if rank is None else range(rank - len(axes), rank)
    if not axes or axes != tuple(last):
        raise NotItError
    return len(axes)


def sizes_of(place: Place, axes: Sequence[int]) -> list[int]:
    """The sizes of the data along some axes; raises if one is unknown or 0."""
    shape = place.graph.shape(place.data)
    sizes = [] if shape is None else [shape[axis] for axis in axes]
    if not sizes or not all(sizes):
        raise NotItError
    return [size for size in sizes if size]


def vector(place: Place, name: str, shape: Sequence[int], around: int, neutral: float, kind: int | None) -> str:
    """The scale or bias, in the shape that the operator takes.

    In the model, `around` dimensions of size 1 follow it. If the form has none, it is a constant of the neutral number.
    """
    value, graph = place.values.get(name), place.graph
    if kind is None:
        raise NotItError
    if value is None:
        return place.constant(np.full(shape, neutral, helper.tensor_dtype_to_np_dtype(kind)), name)
    actual = graph.shape(value)
    if graph.element_type(value) != kind or actual is None:
        raise NotItError
    if actual == tuple(shape) and not around:
        return value
    expected, constant = (*shape, *(1,) * around), graph.constant(value)
    fits = _stripped(actual) == _stripped(expected) and len(actual) <= (graph.rank(place.data) or 0)
    is_short = len(_stripped(expected)) < len(expected) and len(actual) < len(expected)
    if constant is None or not fits or is_short:
        raise NotItError
    return place.constant(constant.reshape(tuple(shape)), name)


def _stripped(shape: Sequence[int | None]) -> tuple[int | None, ...]:
    """A shape without leading dimensions of size 1."""
    sizes = list(shape)
    while sizes and sizes[0] == 1:
        del sizes[0]
    return tuple(sizes)


def reduction(place: Place) -> list[NodeProto]:
    """The node that replaces a form of a Reduce operator."""
    form, axes, graph = place.form, place.match.axes, place.graph
    element_type = graph.element_type(place.data)
    has_types = element_type in (form.element_types or ()) and element_type == graph.element_type(place.output)
    has_axes = axes is None or axes.stated is not None or place.opset >= AXES_ARE_INPUT
    count = graph.constant(place.values.get("count"))
    dimensions = max(place.match.most_dimensions, 0 if count is None else count.ndim)
    attributes = {**place.match.attributes, **form.attributes}
    is_within = _is_within(place, dimensions, attributes["keepdims"])
    if not (has_types and has_axes and is_within):
        raise NotItError
    if "count" in place.values:
        check_number(place, place.values["count"], inverse=False)
    node = NodeProto(op_type=form.op_type, input=[place.data], output=[place.output])
    if axes is not None and axes.value and place.opset >= AXES_ARE_INPUT:
        node.input.append(axes.value)
    elif axes is not None and axes.stated:
        node.attribute.append(helper.make_attribute("axes", axes.stated))
    for name, value in attributes.items():
        node.attribute.append(helper.make_attribute(name, value))
    return [node]


def _is_within(place: Place, dimensions: int, keepdims: int) -> bool:
    """Whether a constant of one element keeps the rank of the operator's result."""
    if not dimensions:
        return True
    graph = place.graph
    rank = graph.rank(place.data) or 0
    if not keepdims:
        rank -= len(place.axes)
    # If the result has a higher rank than the constant, that rank does not come from the constant.
    return dimensions <= rank or dimensions < (graph.rank(place.output) or 0)


def check_number(place: Place, divisor: str, *, inverse: bool) -> None:
    """Check that sums are divided by the number of elements behind them, or multiplied by the inverse."""
    graph, summed = place.graph, place.match.axes
    value, shape = graph.constant(divisor), graph.shape(place.data if summed is None else summed.data)
    sizes = None if shape is None else [shape[axis] if axis < len(shape) else None for axis in place.axes]
    is_known = summed is None or summed.stated is not None
    if value is None or value.size != 1 or shape is None or sizes is None or not is_known or not all(sizes):
        raise NotItError
    number, count = float(value.reshape(-1)[0]), prod(size or 0 for size in sizes)
    if value.ndim > len(shape) or not is_near(number, 1 / count if inverse else count, value.dtype):
        raise NotItError
