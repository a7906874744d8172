"""Softmax and its kin at opset 13; GroupNormalization, LayerNormalization and their kin by other operators.

Before opset 13 Softmax, LogSoftmax and Hardmax took the input as a matrix of two dimensions, cut at axis (default 1),
and normalized over everything from axis on; since then over that one axis (default -1). The two agree where axis is the
last one.

LayerNormalization and RMSNormalization are rules of the book `rules/operators`; here are the names that onnxruntime has
for them. Statistics are taken in float32 of narrower data, as the attribute stash_type says; double stays double, which
is what runtimes do.

Sources: the pages of Softmax (11, 13), GroupNormalization (18, 21).
"""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.ops.axes import from_the_front
from reducelower.adapters.registry import Outcome, lowers, raises
from reducelower.errors import RefusedError
from reducelower.model.attributes import attribute_of, value_of
from reducelower.model.numbers import HALVES

_OPERATORS = ("Hardmax", "LogSoftmax", "Softmax")


def _rank(op: Writer) -> int:
    found = op.scope.rank(op.node.output[0])
    return op.rank(0) if found is None else found


def _is_last(op: Writer, axis: int, rank: int) -> bool:
    """Whether only dimensions of size one follow the axis."""
    if axis == rank - 1:
        return True
    shape = op.shape(0)
    return shape is not None and all(size == 1 for size in shape[axis + 1 :])


def _lower(op: Writer) -> Outcome:
    """Bring the axis to the end, where cutting there leaves only it."""
    axis = int(op.attribute("axis", -1))
    if axis == -1:
        op.state("axis", -1)
        return None
    rank = _rank(op)
    axis = from_the_front(axis, rank)
    if _is_last(op, axis, rank):
        return None
    swapped = list(range(rank))
    swapped[axis], swapped[-1] = swapped[-1], swapped[axis]
    data = op.add("Transpose", op.input(0), tail="axis_last", perm=swapped)
    return op.yields("Transpose", op.add(op.node.op_type, data, axis=rank - 1), perm=swapped)


def _raise(op: Writer) -> Outcome:
    """Cut the input where it used to be cut, unless that is the last axis."""
    axis = int(op.attribute("axis", 1))
    if axis == -1:
        return None
    rank = op.scope.rank(op.input(0))
    if rank is not None and _is_last(op, from_the_front(axis, rank), rank):
        if attribute_of(op.node, "axis") is None and axis != rank - 1:
            op.set("axis", axis)
        return None
    data = op.input(0)
    shape = op.scope.shape(data)
    if shape is not None and 0 in shape:
        return op.yields("Identity", data)
    matrix = op.add("Flatten", data, tail="matrix", axis=axis)
    if shape is not None and None not in shape:
        whole = op.integers(shape, "shape")
        return op.yields("Reshape", op.add(op.node.op_type, matrix, axis=-1), whole)
    whole = op.add("Shape", data)
    normalized = op.add(op.node.op_type, matrix, axis=-1)
    return op.yields_reshaped(normalized, whole, op.scope.needed_element_type(data))


for _op_type in _OPERATORS:
    lowers(_op_type, 13)(_lower)
    raises(_op_type, 13)(_raise)


def _statistics_type(node: NodeProto, element_type: int) -> int:
    """The element type that mean and variance are taken in."""
    stash = int(value_of(node, "stash_type", TensorProto.FLOAT))
    if stash == TensorProto.DOUBLE or element_type == TensorProto.DOUBLE:
        return TensorProto.DOUBLE
    return TensorProto.FLOAT if stash == TensorProto.FLOAT else stash


def _scaled(op: Writer, value: str, scale: str, bias: str) -> list[NodeProto]:
    if not bias:
        return op.yields("Mul", value, scale)
    return op.yields("Add", op.add("Mul", value, scale, tail="scaled"), bias)


@expresses("SimplifiedLayerNormalization", opset=23)
def _simplified(op: Writer) -> list[NodeProto]:
    """RMSNormalization as onnxruntime writes it."""
    if op.wants(1):
        raise RefusedError("it yields the inverse of the root as well, which RMSNormalization does not")
    return op.yields("RMSNormalization", *op.node.input[:2], copied=op.node.attribute)


@expresses("GroupNormalization", opset=21)
def _raise_group_normalization(op: Writer) -> list[NodeProto] | None:
    """Scale and bias per group become per channel: each is repeated for the channels of its group."""
    shape = op.shape(0)
    channels = None if shape is None or len(shape) < 2 else shape[1]
    if op.scope.opset >= 21 or op.scope.target_opset < 21 or channels is None:
        return None
    groups = int(op.attribute("num_groups"))
    column = op.integers([groups, 1], "group_column")
    repeated = op.integers([groups, channels // groups], "group_channels")
    flat = op.integers([channels], "channels")
    vectors = []
    for index, tail in ((1, "channel_scale"), (2, "channel_bias")):
        wide = op.add("Expand", op.add("Reshape", op.input(index), column), repeated)
        vectors.append(op.add("Reshape", wide, flat, tail=tail))
    epsilon = float(op.attribute("epsilon", 1e-5))
    return op.yields("GroupNormalization", op.input(0), *vectors, epsilon=epsilon, num_groups=groups)


@expresses("GroupNormalization", opset=13)
def _group_normalization(op: Writer) -> list[NodeProto]:
    """Each group of channels is one instance: Reshape to (N, groups, -1), InstanceNormalization, Reshape back."""
    data, scale, bias = op.node.input[:3]
    element_type = op.scope.needed_element_type(data)
    groups = int(op.attribute("num_groups"))
    # The version of opset 18 has scale and bias per group and no stash_type.
    per_group = op.scope.opset < 21
    wide = element_type if per_group and element_type not in HALVES else _statistics_type(op.node, element_type)
    data = op.cast(data, element_type, wide, "wide")
    shape = op.integers([0, groups, -1], "group_shape")
    grouped = op.add("Reshape", data, shape, tail="grouped")
    if per_group:
        factor = op.cast(scale, element_type, wide, "wide_scale")
        offset = op.cast(bias, element_type, wide, "wide_bias")
    else:
        op.make_room(2, groups)
        factor = op.constant([1.0] * groups, wide, "group_scale")
        offset = op.constant([0.0] * groups, wide, "group_bias")
    epsilon = float(op.attribute("epsilon", 1e-5))
    normal = op.add("InstanceNormalization", grouped, factor, offset, tail="normalized", epsilon=epsilon)
    whole = op.add("Shape", op.input(0), tail="shape")
    if per_group:
        return op.yields_cast(op.add("Reshape", normal, whole, tail="whole"), wide, element_type)
    back = op.cast(op.add("Reshape", normal, whole, tail="whole"), wide, element_type, "narrow")
    trailing = list(range(1, op.rank(0) - 1))
    if trailing:
        axes = op.integers(trailing, "spatial_axes")
        scale = op.add("Unsqueeze", scale, axes, tail="channel_scale")
        bias = op.add("Unsqueeze", bias, axes, tail="channel_bias")
    return _scaled(op, back, scale, bias)


@raises("MeanVarianceNormalization", 13)
def _state_axes(op: Writer) -> None:
    """Shape inference expands the body of 13 without the default axes, and fails where they are absent.

    Raises:
        RefusedError: the data lacks one of the axes, which inference looks at from 13 on.
    """
    stated = attribute_of(op.node, "axes")
    if stated is not None and stated.ref_attr_name:
        return
    axes = list(op.attribute("axes", [0, 2, 3]))
    rank = op.scope.rank(op.input(0))
    if rank is not None and not all(-rank <= axis < rank for axis in axes):
        raise RefusedError(f"its axes are {axes}, and its data has {rank} dimensions", "mend the model")
    if stated is None:
        op.set("axes", axes)
