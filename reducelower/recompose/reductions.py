"""Reduce operators: the node that stands in the place of what a rule or a hand wrote for one."""

from __future__ import annotations

from math import prod

from onnx import NodeProto, helper

from reducelower.recompose.expressions import AXES_ARE_INPUT
from reducelower.recompose.place import Place
from reducelower.scope.node import blank

__all__ = ["reduction"]


def reduction(place: Place) -> list[NodeProto]:
    """The node to put in the place of a form of a Reduce operator; none where it is not that operator."""
    form, axes = place.form, place.found.axes
    attributes = dict(form.attributes)
    if axes is not None and form.is_careless and not axes.stated:
        return []
    if not _is_within(place, place.found.most_dimensions) or not _adds_up(place):
        return []
    node = NodeProto(op_type=form.op_type, input=[blank(place.data)], output=[blank(place.output)])
    attributes.pop("axes", None)
    if axes is not None and place.opset >= AXES_ARE_INPUT:
        assert axes.value is not None
        node.input.append(blank(axes.value))
    elif axes is not None:
        if not axes.stated:
            return []
        node.attribute.append(helper.make_attribute("axes", axes.stated))
    if not attributes.get("noop_with_empty_axes"):
        attributes.pop("noop_with_empty_axes", None)
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
    return [node]


def _is_within(place: Place, dimensions: int) -> bool:
    """Whether a constant of one element leaves the result the dimensions that the operator gives it."""
    if not dimensions:
        return True
    view = place.view
    rank = view.rank(place.data) or 0
    if not place.form.attributes.get("keepdims", 1):
        rank -= rank if place.found.axes is None else len(place.axes)
    # The result has as many as the constant at least: what has more does not have them from there.
    return dimensions <= rank or dimensions < (view.rank(place.output) or 0)


def _adds_up(place: Place) -> bool:
    """Whether a sum is divided by the number of elements it is of, where the form does that."""
    count, view = place.values.get("count"), place.view
    if count is None:
        return True
    shape, value = view.shape(place.data), view.constant(count)
    if shape is None or value is None or value.size != 1 or not _is_within(place, value.ndim):
        return False
    axes = range(len(shape)) if place.found.axes is None else place.axes
    if any(axis >= len(shape) for axis in axes):
        return False
    sizes = [shape[axis] for axis in axes]
    return all(sizes) and float(value.reshape(-1)[0]) == prod(size or 0 for size in sizes)
