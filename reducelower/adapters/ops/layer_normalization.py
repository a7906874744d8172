"""GroupNormalization where the target has none, LayerNormalization by onnxruntime's names, MeanVarianceNormalization.

LayerNormalization and RMSNormalization are rules of the book `rules/operators`. Statistics are taken in float32 of
narrower data, as the attribute stash_type says; double stays double, which is what runtimes do.

Source: https://onnx.ai/onnx/operators/onnx__GroupNormalization.html (18, 21).
"""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.registry import Outcome, raises
from reducelower.errors import RefusedError
from reducelower.model.attributes import attribute_of, set_attribute, value_of
from reducelower.model.numbers import HALVES
from reducelower.scope.scope import Scope


def _statistics_type(node: NodeProto, element_type: int) -> int:
    """The element type that mean and variance are taken in."""
    stash = int(value_of(node, "stash_type", TensorProto.FLOAT))
    if stash == TensorProto.DOUBLE or element_type == TensorProto.DOUBLE:
        return TensorProto.DOUBLE
    return TensorProto.FLOAT if stash == TensorProto.FLOAT else stash


def _scaled(body: Writer, value: str, scale: str, bias: str) -> list[NodeProto]:
    if not bias:
        return body.yields("Mul", value, scale)
    return body.yields("Add", body.add("Mul", value, scale, tail="scaled"), bias)


@expresses("SimplifiedLayerNormalization", opset=23)
def _simplified(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """RMSNormalization as onnxruntime writes it."""
    body = Writer(node, scope)
    if body.wants(1):
        raise RefusedError("it yields the inverse of the root as well, which RMSNormalization does not")
    return body.yields("RMSNormalization", *node.input[:2], copied=node.attribute)


@expresses("GroupNormalization", opset=21)
def _raise_group_normalization(node: NodeProto, scope: Scope) -> list[NodeProto] | None:
    """Scale and bias per group become per channel: each is repeated for the channels of its group."""
    shape = scope.shape(node.input[0])
    channels = None if shape is None or len(shape) < 2 else shape[1]
    if scope.opset >= 21 or scope.target_opset < 21 or channels is None:
        return None
    body = Writer(node, scope)
    groups = int(value_of(node, "num_groups"))
    column = body.integers([groups, 1], "group_column")
    repeated = body.integers([groups, channels // groups], "group_channels")
    flat = body.integers([channels], "channels")
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
    wide = element_type if per_group and element_type not in HALVES else _statistics_type(node, element_type)
    data = body.cast(data, element_type, wide, "wide")
    shape = body.integers([0, groups, -1], "group_shape")
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
        return body.yields_cast(body.add("Reshape", normal, whole, tail="whole"), wide, element_type)
    back = body.cast(body.add("Reshape", normal, whole, tail="whole"), wide, element_type, "narrow")
    trailing = list(range(1, scope.needed_rank(node.input[0]) - 1))
    if trailing:
        axes = body.integers(trailing, "spatial_axes")
        scale = body.add("Unsqueeze", scale, axes, tail="channel_scale")
        bias = body.add("Unsqueeze", bias, axes, tail="channel_bias")
    return _scaled(body, back, scale, bias)


@raises("MeanVarianceNormalization", 13)
def _state_axes(node: NodeProto, scope: Scope) -> Outcome:
    """Shape inference expands the body of 13 without the default axes, and fails where they are absent.

    Raises:
        RefusedError: the data lacks one of the axes, which inference looks at from 13 on.
    """
    stated = attribute_of(node, "axes")
    if stated is not None and stated.ref_attr_name:
        return None
    axes = list(value_of(node, "axes", [0, 2, 3]))
    rank = scope.rank(node.input[0])
    if rank is not None and not all(-rank <= axis < rank for axis in axes):
        raise RefusedError(f"its axes are {axes}, and its data has {rank} dimensions", "mend the model")
    if stated is None:
        set_attribute(node, "axes", axes)
    return None
