"""LayerNormalization, RMSNormalization and GroupNormalization where the target has none; MeanVarianceNormalization.

The bodies that the schemas carry take the variance as E[x^2] - E[x]^2, which loses every digit where the mean is large
against the deviation, and RMSNormalization's needs a Loop for its axes. Written here is what exporters wrote before
the operators came, which runtimes know how to fuse. Statistics are taken in float32 of narrower data, as the
attribute stash_type says; double stays double, which is what runtimes do.

Sources: https://onnx.ai/onnx/operators/onnx__LayerNormalization.html (17),
https://onnx.ai/onnx/operators/onnx__RMSNormalization.html (23),
https://onnx.ai/onnx/operators/onnx__GroupNormalization.html (18, 21).
"""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from reducelower.adapters.absent import expresses
from reducelower.adapters.builder import Writer
from reducelower.adapters.registry import Outcome, raises
from reducelower.errors import RefusedError
from reducelower.model.attributes import attribute_of, set_attribute, value_of
from reducelower.scope.scope import Scope

__all__: list[str] = []

_NARROW = (TensorProto.FLOAT16, TensorProto.BFLOAT16)


def _statistics_type(node: NodeProto, element_type: int) -> int:
    """The element type that mean and variance are taken in."""
    stash = int(value_of(node, "stash_type", TensorProto.FLOAT))
    if stash == TensorProto.DOUBLE or element_type == TensorProto.DOUBLE:
        return TensorProto.DOUBLE
    return TensorProto.FLOAT if stash == TensorProto.FLOAT else stash


def _axes(node: NodeProto, scope: Scope) -> list[int]:
    """The axes from the attribute axis to the last one, counted from the back where the attribute is."""
    axis = int(value_of(node, "axis", -1))
    if axis < 0:
        return list(range(axis, 0))
    rank = scope.needed_rank(node.input[0])
    if axis >= rank:
        raise RefusedError(f"its axis {axis} is out of range for rank {rank}", "mend the model")
    return list(range(axis, rank))


def _scaled(body: Writer, value: str, scale: str, bias: str) -> list[NodeProto]:
    if not bias:
        return body.yields("Mul", value, scale)
    return body.yields("Add", body.add("Mul", value, scale, tail="scaled"), bias)


@expresses("LayerNormalization", opset=13)
def _layer_normalization(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias."""
    body = Writer(node, scope)
    data = node.input[0]
    element_type = scope.needed_element_type(data)
    wide = _statistics_type(node, element_type)
    axes = _axes(node, scope)
    data = body.cast(data, element_type, wide, "wide")
    mean = body.add("ReduceMean", data, tail="mean", axes=axes, keepdims=1)
    deviation = body.add("Sub", data, mean, tail="deviation")
    # Pow rather than Mul: the form that runtimes recognize.
    square = body.add("Pow", deviation, body.constant(2.0, wide, "two"), tail="square")
    variance = body.add("ReduceMean", square, tail="variance", axes=axes, keepdims=1)
    epsilon = body.constant(value_of(node, "epsilon", 1e-5), wide, "epsilon")
    root = body.add("Sqrt", body.add("Add", variance, epsilon, tail="stabilized"), tail="root")
    if body.wants(1):
        body.yields("Cast" if wide == TensorProto.DOUBLE else "Identity", mean, output=1, **_to_float(wide))
    if body.wants(2):
        inverse = body.add("Reciprocal", root, tail="inverse")
        body.yields("Cast" if wide == TensorProto.DOUBLE else "Identity", inverse, output=2, **_to_float(wide))
    normalized = body.add("Div", deviation, root, tail="normalized")
    return _scaled(body, body.cast(normalized, wide, element_type, "narrow"), body.input(1), body.input(2))


def _to_float(wide: int) -> dict[str, int]:
    """Mean and InvStdDev are float whatever they were taken in."""
    return {"to": TensorProto.FLOAT} if wide == TensorProto.DOUBLE else {}


@expresses("SimplifiedLayerNormalization", opset=23)
def _simplified(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """RMSNormalization as onnxruntime writes it."""
    body = Writer(node, scope)
    if body.wants(1):
        raise RefusedError("it yields the inverse of the root as well, which RMSNormalization does not")
    nodes = body.yields("RMSNormalization", *node.input[:2])
    nodes[-1].attribute.extend(node.attribute)
    return nodes


@expresses("RMSNormalization", opset=13)
def _rms_normalization(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """X / sqrt(mean(x^2) + epsilon) * scale, in the scale's element type."""
    body = Writer(node, scope)
    data, scale = node.input[:2]
    element_type, scale_type = scope.needed_element_type(data), scope.needed_element_type(scale)
    wide = _statistics_type(node, element_type)
    data = body.cast(data, element_type, wide, "wide")
    square = body.add("Pow", data, body.constant(2.0, wide, "two"), tail="square")
    mean = body.add("ReduceMean", square, tail="mean", axes=_axes(node, scope), keepdims=1)
    epsilon = body.constant(value_of(node, "epsilon", 1e-5), wide, "epsilon")
    root = body.add("Sqrt", body.add("Add", mean, epsilon, tail="stabilized"), tail="root")
    normalized = body.add("Div", data, root, tail="normalized")
    return _scaled(body, body.cast(normalized, wide, scale_type, "narrow"), scale, "")


@expresses("GroupNormalization", opset=21)
def _raise_group_normalization(node: NodeProto, scope: Scope) -> list[NodeProto] | None:
    """Scale and bias per group become per channel: each is repeated for the channels of its group."""
    shape = scope.shape(node.input[0])
    channels = None if shape is None or len(shape) < 2 else shape[1]
    if scope.opset >= 21 or scope.target_opset < 21 or channels is None:
        return None
    body = Writer(node, scope)
    groups = int(value_of(node, "num_groups"))
    column = body.constant([groups, 1], TensorProto.INT64, "group_column")
    repeated = body.constant([groups, channels // groups], TensorProto.INT64, "group_channels")
    flat = body.constant([channels], TensorProto.INT64, "channels")
    vectors = []
    for index, tail in ((1, "channel_scale"), (2, "channel_bias")):
        wide = body.add("Expand", body.add("Reshape", body.input(index), column), repeated)
        vectors.append(body.add("Reshape", wide, flat, tail=tail))
    epsilon = float(value_of(node, "epsilon", 1e-5))
    return body.yields("GroupNormalization", body.input(0), *vectors, epsilon=epsilon, num_groups=groups)


@expresses("GroupNormalization", opset=13)
def _group_normalization(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """Each group of channels is one instance: Reshape to (N, groups, -1), InstanceNormalization, Reshape back."""
    body = Writer(node, scope)
    data, scale, bias = node.input[:3]
    element_type = scope.needed_element_type(data)
    groups = int(value_of(node, "num_groups"))
    # The version of opset 18 has scale and bias per group and no stash_type.
    per_group = scope.opset < 21
    wide = element_type if per_group and element_type not in _NARROW else _statistics_type(node, element_type)
    data = body.cast(data, element_type, wide, "wide")
    shape = body.constant([0, groups, -1], TensorProto.INT64, "group_shape")
    grouped = body.add("Reshape", data, shape, tail="grouped")
    if per_group:
        factor = body.cast(scale, element_type, wide, "wide_scale")
        offset = body.cast(bias, element_type, wide, "wide_bias")
    else:
        factor = body.constant([1.0] * groups, wide, "group_scale")
        offset = body.constant([0.0] * groups, wide, "group_bias")
    epsilon = float(value_of(node, "epsilon", 1e-5))
    normal = body.add("InstanceNormalization", grouped, factor, offset, tail="normalized", epsilon=epsilon)
    whole = body.add("Shape", node.input[0], tail="shape")
    if per_group:
        if wide == element_type:
            return body.yields("Reshape", normal, whole)
        return body.yields("Cast", body.add("Reshape", normal, whole, tail="whole"), to=element_type)
    back = body.cast(body.add("Reshape", normal, whole, tail="whole"), wide, element_type, "narrow")
    trailing = list(range(1, scope.needed_rank(node.input[0]) - 1))
    if trailing:
        axes = body.constant(trailing, TensorProto.INT64, "spatial_axes")
        scale = body.add("Unsqueeze", scale, axes, tail="channel_scale")
        bias = body.add("Unsqueeze", bias, axes, tail="channel_bias")
    return _scaled(body, back, scale, bias)


@raises("MeanVarianceNormalization", 13)
def _state_axes(node: NodeProto, scope: Scope) -> Outcome:
    """Shape inference expands the body of 13 without the default axes, and fails where they are absent."""
    if attribute_of(node, "axes") is not None:
        return False
    set_attribute(node, "axes", [0, 2, 3])
    return True
