"""QuantizeLinear and DequantizeLinear across their versions, and written out where there are none.

Below 13 there is one scale per tensor, below 21 none per block, below 19 scales are float32; below 10 the operators
do not exist. Written out they compute what runtimes do: the difference to the zero point in int32, the division in
float32, halves rounded to even.

Sources: https://onnx.ai/onnx/operators/onnx__QuantizeLinear.html (10, 13, 19, 21, 23),
https://onnx.ai/onnx/operators/onnx__DequantizeLinear.html (10, 13, 19, 21, 23).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import NodeProto, TensorProto, helper

from reducelower.adapters.absent import expresses
from reducelower.adapters.builder import Writer
from reducelower.adapters.registry import Outcome, lowers, raises
from reducelower.errors import RefusedError
from reducelower.model.attributes import drop_attribute, value_of
from reducelower.model.schemas import element_type_name
from reducelower.scope.scope import Scope

__all__: list[str] = []

_HALVES = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
_BYTES = (TensorProto.INT8, TensorProto.UINT8)
_SHORTS = (TensorProto.INT16, TensorProto.UINT16)


@lowers("QuantizeLinear", 23)
def _lower_precision(node: NodeProto, scope: Scope) -> Outcome:
    """Data and scale are of one element type: that of the attribute precision, else that of the scale."""
    precision = int(value_of(node, "precision", 0))
    data, scale = node.input[:2]
    data_type, scale_type = scope.needed_element_type(data), scope.needed_element_type(scale)
    wanted = precision or scale_type
    changed = drop_attribute(node, "precision")
    if data_type == scale_type == wanted:
        return changed
    body = Writer(node, scope)
    for index, found in ((0, data_type), (1, scale_type)):
        if found != wanted:
            node.input[index] = body.add("Cast", node.input[index], to=wanted)
    return [*body.nodes, node]


@lowers("QuantizeLinear", 21)
def _lower_output_type(node: NodeProto, scope: Scope) -> Outcome:
    """The element type of the result is that of the zero point, or uint8."""
    if value_of(node, "block_size", 0):
        raise RefusedError("it quantizes by blocks (block_size)", "opset 21 is the oldest that does")
    wanted = int(value_of(node, "output_dtype", 0))
    if wanted in _SHORTS or (len(node.input) > 2 and scope.element_type(node.input[2]) in _SHORTS):
        return _quantized(node, scope, _beside(node, scope))
    changed = drop_attribute(node, "block_size") | drop_attribute(node, "output_dtype")
    if not wanted or wanted == TensorProto.UINT8 or (len(node.input) > 2 and node.input[2]):
        return changed
    shape = scope.shape(node.input[1])
    if shape is None or None in shape:
        raise RefusedError("it states output_dtype without a zero point, and how many scales there are is not known")
    zeros = Writer(node, scope).constant(np.zeros([size or 0 for size in shape]), wanted, "zero_point")
    del node.input[2:]
    node.input.append(zeros)
    return True


@lowers("QuantizeLinear", 19)
def _lower_half_scale(node: NodeProto, scope: Scope) -> Outcome:
    """Data and scale are float32, which holds every half."""
    body = Writer(node, scope)
    for index in (0, 1):
        if scope.element_type(node.input[index]) in _HALVES:
            node.input[index] = body.add("Cast", node.input[index], to=TensorProto.FLOAT)
    changed = drop_attribute(node, "saturate")
    return [*body.nodes, node] if body.nodes else changed


@raises("QuantizeLinear", 19)
def _raise_integers(node: NodeProto, scope: Scope) -> Outcome:
    """Since 19 data has the element type of the scale; integers are divided in float32 all along."""
    if scope.element_type(node.input[0]) != TensorProto.INT32:
        return False
    body = Writer(node, scope)
    node.input[0] = body.add("Cast", node.input[0], to=TensorProto.FLOAT)
    return [*body.nodes, node]


def _per_axis(node: NodeProto, scope: Scope) -> bool:
    """Whether there is a scale for every index of an axis."""
    return scope.needed_rank(node.input[1]) > 0 and scope.shape(node.input[1]) != (1,)


def _beside(node: NodeProto, scope: Scope) -> Callable[[Writer, str], str]:
    """What gives scales or zero points the shape that lies along their axis of the data."""
    if not _per_axis(node, scope):
        return lambda body, name: name
    rank = scope.needed_rank(node.input[0])
    axis = int(value_of(node, "axis", 1))
    trailing = rank - 1 - (axis + rank if axis < 0 else axis)

    def reshaped(body: Writer, name: str) -> str:
        if not trailing:
            return name
        value = scope.constant(name)
        if value is not None:
            return scope.add_constant(value.reshape(-1, *[1] * trailing), name.rpartition("/")[2])
        return body.add("Reshape", name, body.constant([-1] + [1] * trailing, TensorProto.INT64, "column"))

    return reshaped


@lowers("DequantizeLinear", 23)
def _lower_result_type(node: NodeProto, scope: Scope) -> Outcome:
    """The result has the element type of the scale; another one takes a Cast."""
    wanted = int(value_of(node, "output_dtype", 0))
    changed = drop_attribute(node, "output_dtype")
    if not wanted or wanted == scope.needed_element_type(node.input[1]):
        return changed
    body = Writer(node, scope)
    result = body.add("DequantizeLinear", *node.input)
    body.nodes[-1].attribute.extend(node.attribute)
    return body.yields("Cast", result, to=wanted)


@lowers("DequantizeLinear", 21)
def _lower_blocks(node: NodeProto, scope: Scope) -> Outcome:
    """Scales per block are repeated for the elements of the block."""
    size = int(value_of(node, "block_size", 0))
    wide = scope.element_type(node.input[0]) in _SHORTS
    if not size:
        return _dequantized(node, scope, _beside(node, scope)) if wide else drop_attribute(node, "block_size")
    axis = int(value_of(node, "axis", 1))
    shape = scope.shape(node.input[0])
    length = None if shape is None else shape[axis]
    if length is None:
        raise RefusedError("it has scales per block of an axis of unknown length", "opset 21 is the oldest with blocks")
    blocks = np.minimum(np.arange(length) // size, -(-length // size) - 1)

    def repeated(body: Writer, name: str) -> str:
        indices = body.constant(blocks, TensorProto.INT64, "block_of")
        return body.add("Gather", name, indices, tail="repeated", axis=axis)

    return _dequantized(node, scope, repeated)


@lowers("DequantizeLinear", 19)
def _lower_half_result(node: NodeProto, scope: Scope) -> Outcome:
    """The scale is float32, and so is the result before it is cast back."""
    scale_type = scope.element_type(node.input[1])
    if scale_type not in _HALVES:
        return False
    body = Writer(node, scope)
    scale = body.add("Cast", node.input[1], to=TensorProto.FLOAT)
    result = body.add("DequantizeLinear", node.input[0], scale, *node.input[2:])
    body.nodes[-1].attribute.extend(node.attribute)
    return body.yields("Cast", result, to=scale_type)


@lowers("DequantizeLinear", 13)
def _lower_dequantize_axis(node: NodeProto, scope: Scope) -> Outcome:
    if _per_axis(node, scope):
        return _dequantized(node, scope, _beside(node, scope))
    return _scalar_parameters(node, scope)


def _scalar_parameters(node: NodeProto, scope: Scope) -> Outcome:
    """One scale, as a scalar: the vector of one element is a form that came with the axis."""
    changed = drop_attribute(node, "axis")
    body = Writer(node, scope)
    for index in range(1, len(node.input)):
        name = node.input[index]
        if name and scope.needed_rank(name) == 1:
            value = scope.constant(name)
            shape = body.constant(np.zeros(0), TensorProto.INT64, "scalar")
            if value is not None:
                node.input[index] = scope.add_constant(value.reshape(()), name.rpartition("/")[2])
            else:
                node.input[index] = body.add("Reshape", name, shape)
            changed = True
    return [*body.nodes, node] if body.nodes else changed


@expresses("DequantizeLinear", opset=9, reads=10)
def _dequantize(node: NodeProto, scope: Scope) -> list[NodeProto]:
    return _dequantized(node, scope, lambda body, name: name)


def _dequantized(node: NodeProto, scope: Scope, beside: Callable[[Writer, str], str]) -> list[NodeProto]:
    """(x - zero point) * scale, in the element type of the scale."""
    body = Writer(node, scope)
    data = body.add("Cast", node.input[0], tail="integers", to=TensorProto.INT32)
    if body.input(2):
        zero = body.add("Cast", beside(body, node.input[2]), tail="zero", to=TensorProto.INT32)
        data = body.add("Sub", data, zero, tail="difference")
    data = body.add("Cast", data, tail="numbers", to=scope.needed_element_type(node.input[1]))
    return body.yields("Mul", data, beside(body, node.input[1]))


@lowers("QuantizeLinear", 13)
def _lower_quantize_axis(node: NodeProto, scope: Scope) -> Outcome:
    if _per_axis(node, scope):
        return _quantized(node, scope, _beside(node, scope))
    return _scalar_parameters(node, scope)


@expresses("QuantizeLinear", opset=12, reads=10)
def _quantize(node: NodeProto, scope: Scope) -> list[NodeProto]:
    return _quantized(node, scope, lambda body, name: name)


def _quantized(node: NodeProto, scope: Scope, beside: Callable[[Writer, str], str]) -> list[NodeProto]:
    """Round(x / scale) + zero point, brought into the range of the narrow type."""
    goal = scope.needed_element_type(node.input[2]) if len(node.input) > 2 and node.input[2] else TensorProto.UINT8
    goal = int(value_of(node, "output_dtype", 0)) or goal
    if goal not in _BYTES + _SHORTS:
        raise RefusedError(
            f"it quantizes to {element_type_name(goal)}, and opset {scope.target_opset} has no such type"
        )
    body = Writer(node, scope)
    data = node.input[0]
    if scope.needed_element_type(data) != TensorProto.FLOAT:
        data = body.add("Cast", data, tail="numbers", to=TensorProto.FLOAT)
    data = body.add("Round", body.add("Div", data, beside(body, node.input[1]), tail="scaled"), tail="rounded")
    if body.input(2):
        zero = body.add("Cast", beside(body, node.input[2]), tail="zero", to=TensorProto.FLOAT)
        data = body.add("Add", data, zero, tail="shifted")
    limits = np.iinfo(helper.tensor_dtype_to_np_dtype(goal))
    bounds = [body.constant(bound, TensorProto.FLOAT, "bound") for bound in (limits.min, limits.max)]
    return body.yields("Cast", body.add("Clip", data, *bounds), to=goal)


@expresses("MatMulInteger", opset=9)
def _matmul_integer(node: NodeProto, scope: Scope) -> list[NodeProto] | None:
    """The product of the differences to the zero points, in int32; only zero points per tensor."""
    body = Writer(node, scope)
    factors = []
    for index in (0, 1):
        factor = body.add("Cast", node.input[index], tail="integers", to=TensorProto.INT32)
        if body.input(index + 2):
            # Those of the rows of A would have to be turned; those of the columns of B lie along the last axis.
            if index == 0 and scope.shape(body.input(2)) not in ((), (1,)):
                return None
            zero = body.add("Cast", body.input(index + 2), tail="zero", to=TensorProto.INT32)
            factor = body.add("Sub", factor, zero, tail="difference")
        factors.append(factor)
    return body.yields("MatMul", *factors)
