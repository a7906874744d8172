"""QuantizeLinear and DequantizeLinear across their versions, and written out where there are none.

Below 13 there is one scale per tensor, below 21 none per block, below 19 scales are float32; below 10 the operators
do not exist. Written out they compute what runtimes do: the difference to the zero point in int32, division and product
in float32 whatever the scale is, halves rounded to even.

Sources: https://onnx.ai/onnx/operators/onnx__QuantizeLinear.html (10, 13, 19, 21, 23),
https://onnx.ai/onnx/operators/onnx__DequantizeLinear.html (10, 13, 19, 21, 23).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.registry import Outcome, lowers, raises
from reducelower.errors import RefusedError
from reducelower.model.attributes import drop_attribute, value_of
from reducelower.model.numbers import HALVES, whole_range
from reducelower.model.schemas import element_type_name
from reducelower.scope.scope import Scope

__all__ = ["by_row", "saturated"]

_BYTES = (TensorProto.INT8, TensorProto.UINT8)
_SHORTS = (TensorProto.INT16, TensorProto.UINT16)
# Their zero point is zero.
_FLOATS8 = (
    TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E5M2FNUZ
)  # fmt: skip


@lowers("QuantizeLinear", 23)
def _lower_precision(node: NodeProto, scope: Scope) -> Outcome:
    """Data and scale are of one element type: that of the attribute precision, else that of the scale."""
    precision = int(value_of(node, "precision", 0))
    data, scale = node.input[:2]
    data_type, scale_type = scope.needed_element_type(data), scope.needed_element_type(scale)
    wanted = precision or scale_type
    drop_attribute(node, "precision")
    if data_type == scale_type == wanted:
        return None
    body = Writer(node, scope)
    for index, found in ((0, data_type), (1, scale_type)):
        if found != wanted:
            node.input[index] = body.add("Cast", node.input[index], to=wanted)
    return [*body.nodes, node]


@lowers("QuantizeLinear", 21)
def _lower_output_type(node: NodeProto, scope: Scope) -> Outcome:
    """The element type of the result is that of the zero point, or uint8."""
    if value_of(node, "block_size", 0):
        return _quantized(node, scope, _repeated(node, scope))
    wanted = int(value_of(node, "output_dtype", 0))
    if wanted in _SHORTS or (len(node.input) > 2 and scope.element_type(node.input[2]) in _SHORTS):
        return _quantized(node, scope, _beside(node, scope))
    drop_attribute(node, "block_size")
    drop_attribute(node, "output_dtype")
    if not wanted or wanted == TensorProto.UINT8 or (len(node.input) > 2 and node.input[2]):
        return None
    shape = scope.shape(node.input[1])
    if shape is None or None in shape:
        raise RefusedError("it states output_dtype without a zero point, and how many scales there are is not known")
    zeros = Writer(node, scope).constant(np.zeros([size or 0 for size in shape]), wanted, "zero_point")
    del node.input[2:]
    node.input.append(zeros)
    return None


@lowers("QuantizeLinear", 19)
def _lower_half_scale(node: NodeProto, scope: Scope) -> Outcome:
    """Data and scale are float32, which holds every half."""
    body = Writer(node, scope)
    for index in (0, 1):
        if scope.element_type(node.input[index]) in HALVES:
            node.input[index] = body.add("Cast", node.input[index], to=TensorProto.FLOAT)
    drop_attribute(node, "saturate")
    return [*body.nodes, node] if body.nodes else None


@raises("QuantizeLinear", 19)
def _raise_integers(node: NodeProto, scope: Scope) -> Outcome:
    """Since 19 data has the element type of the scale; integers are divided in float32 all along."""
    if scope.element_type(node.input[0]) != TensorProto.INT32:
        return None
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
        return body.add("Reshape", name, body.integers([-1] + [1] * trailing, "column"))

    return reshaped


@lowers("DequantizeLinear", 23)
def _lower_result_type(node: NodeProto, scope: Scope) -> Outcome:
    """The result has the element type of the scale; for another one the scale, or the result, is cast."""
    wanted = int(value_of(node, "output_dtype", 0))
    drop_attribute(node, "output_dtype")
    if not wanted or wanted == scope.needed_element_type(node.input[1]):
        return None
    return _in_float(node, scope, wanted)


def _in_float(node: NodeProto, scope: Scope, wanted: int) -> Outcome:
    """The node with a scale of float, which holds every narrower one, and its result cast to the type wanted."""
    body = Writer(node, scope)
    scale = body.cast(node.input[1], scope.needed_element_type(node.input[1]), TensorProto.FLOAT, "scale")
    if wanted == TensorProto.FLOAT:
        node.input[1] = scale
        return [*body.nodes, node]
    result = body.add("DequantizeLinear", node.input[0], scale, *node.input[2:], copied=node.attribute)
    return body.yields("Cast", result, to=wanted)


@lowers("DequantizeLinear", 21)
def _lower_blocks(node: NodeProto, scope: Scope) -> Outcome:
    """Scales per block are repeated for the elements of the block."""
    if value_of(node, "block_size", 0):
        return _dequantized(node, scope, _repeated(node, scope))
    wide = scope.element_type(node.input[0]) in _SHORTS
    return _dequantized(node, scope, _beside(node, scope)) if wide else None


def _repeated(node: NodeProto, scope: Scope) -> Callable[[Writer, str], str]:
    """What repeats scales or zero points per block for the elements of the block."""
    size, axis = int(value_of(node, "block_size")), int(value_of(node, "axis", 1))
    shape, scales = scope.shape(node.input[0]), scope.shape(node.input[1])
    length = None if shape is None else shape[axis]
    count = None if scales is None else scales[axis]
    if length is None and count is None:
        raise RefusedError("it has scales per block of an axis of unknown length", "opset 21 is the oldest with blocks")
    places = np.arange(size * (count or 0) if length is None else length) // size

    def repeated(body: Writer, name: str) -> str:
        indices = body.integers(places, "block_of")
        whole = body.add("Gather", name, indices, tail="repeated", axis=axis)
        if length is not None:
            return whole
        # The last block may be cut short.
        one = [body.integers([bound], "bound") for bound in (0, axis)]
        end = body.add("Gather", body.add("Shape", node.input[0]), one[1], tail="length", axis=0)
        return body.add("Slice", whole, one[0], end, one[1], tail="cut")

    return repeated


@lowers("DequantizeLinear", 19)
def _lower_half_result(node: NodeProto, scope: Scope) -> Outcome:
    """The scale is float32, and so is the result before it is cast back."""
    scale_type = scope.element_type(node.input[1])
    return _in_float(node, scope, scale_type) if scale_type in HALVES else None


@lowers("DequantizeLinear", 13)
def _lower_dequantize_axis(node: NodeProto, scope: Scope) -> Outcome:
    """What the operator still does is left to it: to know quantized values by, and not to compute them beforehand.

    Where runtimes find float weights beside quantized data they quantize these anew, each in its own way.
    """
    if not _per_axis(node, scope):
        return _scalar_parameters(node, scope)
    beside = _beside(node, scope)
    body = Writer(node, scope)
    zeros = body.constant_input(2)
    is_one = zeros is not None and zeros.size > 0 and bool((zeros == zeros.reshape(-1)[0]).all())
    if scope.target_opset < 10 or (body.input(2) and not is_one and scope.element_type(body.input(0)) not in _BYTES):
        return _dequantized(node, scope, beside)
    one = body.constant(1.0, TensorProto.FLOAT, "unit_scale")
    if is_one:
        zero = scope.add_constant(zeros.reshape(-1)[0], "zero_point")
        data = body.add("DequantizeLinear", body.input(0), one, zero, tail="difference")
        scope.release(body.input(2))
    else:
        data = body.add("DequantizeLinear", body.input(0), one, tail="numbers")
        if body.input(2):
            zero = body.add("DequantizeLinear", beside(body, body.input(2)), one, tail="zero")
            data = body.add("Sub", data, zero, tail="difference")
    return body.yields("Mul", data, beside(body, body.input(1)))


def _scalar_parameters(node: NodeProto, scope: Scope) -> Outcome:
    """One scale, as a scalar: the vector of one element is a form that came with the axis."""
    drop_attribute(node, "axis")
    body = Writer(node, scope)
    for index in range(1, len(node.input)):
        name = node.input[index]
        if name and scope.needed_rank(name) == 1:
            value = scope.constant(name)
            shape = body.integers(np.zeros(0), "scalar")
            if value is not None:
                node.input[index] = scope.add_constant(value.reshape(()), name.rpartition("/")[2])
            else:
                node.input[index] = body.add("Reshape", name, shape)
    return [*body.nodes, node] if body.nodes else None


@expresses("DequantizeLinear", opset=9, reads=10)
def _dequantize(node: NodeProto, scope: Scope) -> list[NodeProto]:
    return _dequantized(node, scope, lambda body, name: name)


def _dequantized(node: NodeProto, scope: Scope, beside: Callable[[Writer, str], str]) -> list[NodeProto]:
    """(x - zero point) * scale in float32, cast to the element type of the scale."""
    body = Writer(node, scope)
    scale_type = scope.needed_element_type(node.input[1])
    data = node.input[0]
    if body.input(2) and scope.needed_element_type(data) not in _FLOATS8:
        data = body.add("Cast", data, tail="integers", to=TensorProto.INT32)
        zero = body.add("Cast", beside(body, node.input[2]), tail="zero", to=TensorProto.INT32)
        data = body.add("Sub", data, zero, tail="difference")
    data = body.add("Cast", data, tail="numbers", to=TensorProto.FLOAT)
    scale = body.cast(beside(body, node.input[1]), scale_type, TensorProto.FLOAT, "scale")
    return body.yields_cast(body.add("Mul", data, scale, tail="product"), TensorProto.FLOAT, scale_type)


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
    body = Writer(node, scope)
    goal = scope.needed_element_type(body.input(2)) if body.input(2) else TensorProto.UINT8
    goal = int(value_of(node, "output_dtype", 0)) or goal
    data = body.cast(node.input[0], scope.needed_element_type(node.input[0]), TensorProto.FLOAT, "numbers")
    scale = body.cast(beside(body, node.input[1]), scope.needed_element_type(node.input[1]), TensorProto.FLOAT, "scale")
    zero = beside(body, body.input(2)) if body.input(2) else ""
    return saturated(body, body.add("Div", data, scale, tail="scaled"), zero, goal)


def saturated(body: Writer, data: str, zero: str, element_type: int) -> list[NodeProto]:
    """Append what rounds float32 data, adds a zero point if there is one, and brings it into the range of a type.

    Raises:
        RefusedError: the element type is none of whole numbers of 8 or 16 bits.
    """
    if element_type not in _BYTES + _SHORTS:
        raise RefusedError(
            f"it quantizes to {element_type_name(element_type)}, and opset {body.scope.target_opset} has no such type"
        )
    data = body.add("Round", data, tail="rounded") if body.scope.target_opset >= 11 else _rounded(body, data)
    if zero:
        data = body.add("Add", data, body.add("Cast", zero, tail="zero", to=TensorProto.FLOAT), tail="shifted")
    bounds = [body.constant(bound, TensorProto.FLOAT, "bound") for bound in whole_range(element_type)]
    return body.yields("Cast", body.add("Clip", data, *bounds), to=element_type)


def _rounded(body: Writer, data: str) -> str:
    """Append what rounds float32 numbers that are to be saturated, halves to even: one is added to the floor, or not.

    What lies beyond 2^17 is out of every range. Above an odd floor a half goes up, which is 2^-24 away from the next
    number below it.
    """
    half, step = (body.constant(value, TensorProto.FLOAT, tail) for value, tail in ((0.5, "half"), (2.0**-23, "step")))
    bounds = [body.constant(bound, TensorProto.FLOAT, "far") for bound in (-(2.0**17), 2.0**17)]
    data = body.add("Clip", data, *bounds, tail="near")
    floor = body.add("Floor", data)
    halved = body.add("Mul", floor, half, tail="halved")
    odd = body.add("Sub", halved, body.add("Floor", halved), tail="half_if_odd")
    limit = body.add("Sub", half, body.add("Mul", odd, step), tail="limit")
    goes_up = body.add("Less", limit, body.add("Sub", data, floor, tail="rest"), tail="goes_up")
    return body.add("Add", floor, body.add("Cast", goes_up, to=TensorProto.FLOAT), tail="rounded")


@expresses("MatMulInteger", opset=9)
def _matmul_integer(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """The product of the differences to the zero points, in int32; below opset 9 in double, which holds it."""
    body = Writer(node, scope)
    factors = []
    for index in (0, 1):
        factor = body.add("Cast", node.input[index], tail="integers", to=TensorProto.INT32)
        if body.input(index + 2):
            zero = body.add("Cast", body.input(index + 2), tail="zero", to=TensorProto.INT32)
            if index == 0:
                zero = by_row(body, zero, body.input(2))
            factor = body.add("Sub", factor, zero, tail="difference")
        factors.append(factor)
    if scope.target_opset >= 9:
        return body.yields("MatMul", *factors)
    wide = [body.add("Cast", factor, tail="double", to=TensorProto.DOUBLE) for factor in factors]
    whole = body.add("Cast", body.add("MatMul", *wide), tail="whole", to=TensorProto.INT64)
    return body.yields("Cast", whole, to=TensorProto.INT32)


def by_row(body: Writer, name: str, source: str) -> str:
    """Values for the rows of a matrix, as many as `source` has, as a column; those of columns lie along the last axis.

    One for all stays as it is, and so do those of stacked matrices, whose shape says where they belong.
    """
    if body.scope.needed_rank(source) != 1 or body.scope.shape(source) == (1,):
        return name
    return body.add("Reshape", name, body.integers([-1, 1], "column"), tail="column")
