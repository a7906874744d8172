"""Decide whether a match is the operator, and build the replacement.

The functions in the table return the nodes, or raise `NotItError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnx import NodeProto, TensorProto, helper

from reducelower.model.schemas import element_type_name, schema, versions
from reducelower.recompose.operands import (
    NotItError,
    check_number,
    epsilon_of,
    reduction,
    refuse_double,
    sizes_of,
    trailing,
    vector,
)
from reducelower.recompose.place import Place

__all__ = ["TooOldError", "replacement"]


class TooOldError(NotItError):
    """The opset version is the only thing in the way; the message says which one has the operator."""


def replacement(place: Place) -> list[NodeProto]:
    """The replacement of a match.

    Raises:
        NotItError: it is not the operator.
    """
    if not place.form.is_reduction:
        _check(place)
    nodes = _OPERATORS.get(place.form.op_type, reduction)(place)
    _check_version(place)
    return nodes


def _check(place: Place) -> None:
    graph, data = place.graph, place.data
    has_axes = place.match.axes is None or place.match.axes.stated is not None
    adds_dimensions = place.match.most_dimensions > (graph.rank(data) or 0)
    if not has_axes or graph.element_type(data) is None or adds_dimensions:
        raise NotItError
    # A sum has to be divided by the number of its elements, or multiplied by the inverse.
    for name in ("count", "share"):
        if name in place.values:
            check_number(place, place.values[name], inverse=name == "share")


_SINCE = {"GroupNormalization": 21}
"""First opset version at which the operator computes what its forms do, if that is not its first version."""


def _check_version(place: Place) -> None:
    op_type, opset = place.form.op_type, place.opset
    first = _SINCE.get(op_type, versions(op_type)[0])
    if opset < first:
        raise TooOldError(f"it came with opset {first}, and this is {opset} (convert --opset {first} --raise)")
    definition, element_type = schema(op_type, opset), place.graph.element_type(place.data)
    assert definition is not None
    assert element_type is not None
    if f"tensor({element_type_name(element_type)})" not in definition.inputs[0].types:
        raise NotItError


# The operators


def _node(place: Place, inputs: Sequence[str] = (), /, **attributes: Any) -> NodeProto:
    """A node of the operator; by default it reads the data."""
    return helper.make_node(place.form.op_type, inputs or [place.data], [place.output], **attributes)


def _by_layer(place: Place) -> list[NodeProto]:
    """LayerNormalization and RMSNormalization."""
    refuse_double(place)
    graph, data = place.graph, place.data
    last_axes = trailing(place)
    names = ("Scale", "B") if place.form.op_type == "LayerNormalization" else ("scale",)
    sizes = sizes_of(place, range(-last_axes, 0))
    kind = graph.element_type(place.output)
    vectors = [vector(place, names[0], sizes, 0, 1.0, kind)]
    if len(names) > 1 and names[1] in place.values:
        vectors.append(vector(place, names[1], sizes, 0, 0.0, kind))
    # RMSNormalization returns the type of its scale, but shape inference assumes that of the data.
    if kind != graph.element_type(place.data):
        raise NotItError
    return [_node(place, [data, *vectors], axis=-last_axes, epsilon=epsilon_of(place))]


def _channels_by_scale(place: Place, rank: int) -> int | None:
    """The number of channels, from the length of the scale."""
    shape, name = place.graph.shape(place.data), place.values.get("scale")
    groups = place.graph.constant(place.values.get("group_shape"))
    if shape is None or shape[1] is not None or name is None or groups is None or groups.size < 2 or groups[1] < 2:
        return None
    scale = place.graph.shape(name)
    is_by_channel = scale is not None and len(scale) in (rank - 1, rank) and set(scale[1 - rank :][1:]) <= {1}
    return scale[1 - rank] if scale is not None and is_by_channel else None


def _group(place: Place) -> list[NodeProto]:
    refuse_double(place)
    graph, data = place.graph, place.data
    rank, kind = graph.rank(data), graph.element_type(data)
    if rank is None or rank < 3:
        raise NotItError
    channels = _channels_by_scale(place, rank) or sizes_of(place, [1])[0]
    groups = _groups(place, channels)
    ones, zeros = (graph.constant(place.values[name]) for name in ("ones", "zeros"))
    is_plain = ones is not None and zeros is not None and bool((ones == 1).all() and (zeros == 0).all())
    if not is_plain or not graph.has_same_sizes(place.output, data):
        raise NotItError
    vectors = [vector(place, name, [channels], rank - 2, like, kind) for name, like in (("scale", 1.0), ("bias", 0.0))]
    return [_node(place, [place.data, *vectors], num_groups=groups, epsilon=epsilon_of(place))]


def _groups(place: Place, channels: int) -> int:
    value, shape = place.graph.constant(place.values["group_shape"]), place.graph.shape(place.data)
    if value is None or value.ndim != 1 or value.size < 3 or shape is None:
        raise NotItError
    batch, groups = int(value[0]), int(value[1])
    if groups < 1 or channels % groups or (batch != 0 and batch != shape[0]):
        raise NotItError
    return groups


def _along_axis(place: Place) -> list[NodeProto]:
    """Softmax and LogSoftmax along one axis; before opset 13 Softmax flattens from that axis on."""
    if len(place.axes) != 1:
        raise NotItError
    (axis,) = place.axes
    rank = place.graph.rank(place.data)
    if place.opset < 13 and (rank is None or axis % rank != rank - 1):
        raise NotItError
    return [_node(place, axis=axis, **dict(place.form.attributes))]


def _gelu(place: Place) -> list[NodeProto]:
    if not place.form.attributes["approximate"]:
        return [_node(place)]
    if place.graph.element_type(place.data) == TensorProto.DOUBLE:
        raise NotItError  # the operator's constants are floats
    return [_node(place, approximate="tanh")]


_OPERATORS: Mapping[str, Callable[[Place], list[NodeProto]]] = {
    "Gelu": _gelu,
    "GroupNormalization": _group,
    "LayerNormalization": _by_layer,
    "LogSoftmax": _along_axis,
    "RMSNormalization": _by_layer,
    "Softmax": _along_axis,
}
