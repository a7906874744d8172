"""QuantizeLinear and DequantizeLinear across their versions, and written out where there are none.

Below 13 there is one scale per tensor, below 21 none per block, below 19 scales are float32; below 10 the operators
do not exist. Written out they compute what runtimes do: the difference to the zero point in int32, division and product
in float32 whatever the scale is, halves rounded to even.

Sources: the pages of QuantizeLinear (10, 13, 19, 21, 23), DequantizeLinear (10, 13, 19, 21, 23).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.ops.axes import from_the_front
from reducelower.adapters.registry import Outcome, lowers, raises
from reducelower.errors import RefusedError
from reducelower.model.numbers import HALVES, whole_range
from reducelower.model.schemas import element_type_name

_BYTES = (TensorProto.INT8, TensorProto.UINT8)
_SHORTS = (TensorProto.INT16, TensorProto.UINT16)

_QUANTIZED = 3
"""What was quantized with the same parameters, which `legalization.quantized_pairs` lets DequantizeLinear read too."""


@lowers("QuantizeLinear", 23)
def _lower_precision(op: Writer) -> Outcome:
    """Data and scale are of one element type: that of the attribute precision, else that of the scale."""
    precision = int(op.attribute("precision", 0))
    data, scale = op.node.input[:2]
    data_type, scale_type = op.scope.needed_element_type(data), op.scope.needed_element_type(scale)
    wanted = precision or scale_type
    op.drop("precision")
    if data_type == scale_type == wanted:
        return None
    for index, found in ((0, data_type), (1, scale_type)):
        if found != wanted:
            op.node.input[index] = op.add("Cast", op.node.input[index], to=wanted)
    return [*op.nodes, op.node]


@lowers("QuantizeLinear", 21)
def _lower_output_type(op: Writer) -> Outcome:
    """The element type of the result is that of the zero point, or uint8."""
    if op.attribute("block_size", 0):
        return _quantized(op, _repeated(op))
    wanted = int(op.attribute("output_dtype", 0))
    if wanted in _SHORTS or (len(op.node.input) > 2 and op.scope.element_type(op.input(2)) in _SHORTS):
        return _quantized(op, _beside(op))
    op.drop("block_size")
    op.drop("output_dtype")
    if not wanted or wanted == TensorProto.UINT8 or (op.input(2)):
        return None
    shape = op.shape(1)
    if shape is None or None in shape:
        raise RefusedError("it states output_dtype without a zero point, and how many scales there are is not known")
    op.set_inputs(2, op.constant(np.zeros([size or 0 for size in shape]), wanted, "zero_point"))
    return None


@lowers("QuantizeLinear", 19)
def _lower_half_scale(op: Writer) -> Outcome:
    """Data and scale are float32, which holds every half."""
    for index in (0, 1):
        if op.scope.element_type(op.node.input[index]) in HALVES:
            op.node.input[index] = op.add("Cast", op.node.input[index], to=TensorProto.FLOAT)
    op.drop("saturate")
    return [*op.nodes, op.node] if op.nodes else None


@raises("QuantizeLinear", 19)
def _raise_integers(op: Writer) -> Outcome:
    """Since 19 data has the element type of the scale; integers are divided in float32 all along."""
    if op.scope.element_type(op.input(0)) != TensorProto.INT32:
        return None
    op.node.input[0] = op.add("Cast", op.input(0), to=TensorProto.FLOAT)
    return [*op.nodes, op.node]


def _per_axis(op: Writer) -> bool:
    """Whether there is a scale for every index of an axis."""
    return op.rank(1) > 0 and op.shape(1) != (1,)


def _beside(op: Writer) -> Callable[[str], str]:
    """What gives scales or zero points the shape that lies along their axis of the data."""
    if not _per_axis(op):
        return lambda name: name
    rank = op.rank(0)
    axis = int(op.attribute("axis", 1))
    trailing = rank - 1 - (axis + rank if axis < 0 else axis)

    def reshaped(name: str) -> str:
        if not trailing:
            return name
        value = op.scope.constant(name)
        if value is not None:
            return op.scope.add_constant(value.reshape(-1, *[1] * trailing), name.rpartition("/")[2])
        return op.add("Reshape", name, op.integers([-1] + [1] * trailing, "column"))

    return reshaped


@lowers("DequantizeLinear", 23)
def _lower_result_type(op: Writer) -> Outcome:
    """The result has the element type of the scale; for another one the scale, or the result, is cast."""
    wanted = int(op.attribute("output_dtype", 0))
    op.drop("output_dtype")
    if wanted and wanted != op.element_type(1):
        return _in_float(op, wanted)
    # What the node quantized back is an input that no version has: it is for the rule of opset 21.
    return [op.node] if op.input(_QUANTIZED) else None


def _in_float(op: Writer, wanted: int) -> Outcome:
    """The node with a scale of float, which holds every narrower one, and its result cast to the type wanted."""
    scale = op.cast(op.input(1), op.element_type(1), TensorProto.FLOAT, "scale")
    if wanted == TensorProto.FLOAT:
        op.node.input[1] = scale
        return [*op.nodes, op.node]
    result = op.add("DequantizeLinear", op.input(0), scale, *op.node.input[2:], copied=op.node.attribute)
    return op.yields("Cast", result, to=wanted)


@lowers("DequantizeLinear", 21)
def _lower_blocks(op: Writer) -> Outcome:
    """Scales per block are repeated for the elements of the block."""
    has_blocks = bool(op.attribute("block_size", 0))
    if op.input(_QUANTIZED):
        found = _rounded_to_scale(op, _repeated(op) if has_blocks else _beside(op))
        if found is not None:
            return found
        op.set_inputs(_QUANTIZED)
    if has_blocks:
        return _dequantized(op, _repeated(op))
    return _dequantized(op, _beside(op)) if op.scope.element_type(op.input(0)) in _SHORTS else None


def _rounded_to_scale(op: Writer, beside: Callable[[str], str]) -> list[NodeProto] | None:
    """Quantized and back: a whole number of steps, as many as the narrow type has on either side of the zero point.

    None unless the zero point is known, and the same for all.
    """
    zeros = op.constant_input(2)
    if op.input(2) and (zeros is None or len(np.unique(zeros)) != 1):
        return None
    zero = int(zeros.reshape(-1)[0]) if zeros is not None else 0
    narrow = op.element_type(0)
    if element_type_name(narrow).startswith("float"):
        return None
    scale = beside(op.input(1))
    steps = _whole(op, op.add("Div", op.input(_QUANTIZED), scale, tail="scaled"))
    bounds = [op.constant(bound - zero, TensorProto.FLOAT, "bound") for bound in whole_range(narrow)]
    op.scope.release(*op.node.input[:3])
    return op.yields("Mul", op.add("Clip", steps, *bounds, tail="steps"), scale)


def _repeated(op: Writer) -> Callable[[str], str]:
    """What repeats scales or zero points per block for the elements of the block."""
    size, axis = int(op.attribute("block_size")), int(op.attribute("axis", 1))
    shape, scales = op.shape(0), op.shape(1)
    length = None if shape is None else shape[from_the_front(axis, len(shape))]
    count = None if scales is None else scales[from_the_front(axis, len(scales))]
    if length is None and count is None:
        raise RefusedError("it has scales per block of an axis of unknown length", "opset 21 is the oldest with blocks")
    places = op.numbered(0, size * (count or 0) if length is None else length) // size

    def repeated(name: str) -> str:
        indices = op.integers(places, "block_of")
        whole = op.add("Gather", name, indices, tail="repeated", axis=axis)
        if length is not None:
            return whole
        # The last block may be cut short.
        one = [op.integers([bound], "bound") for bound in (0, axis)]
        end = op.add("Gather", op.add("Shape", op.input(0)), one[1], tail="length", axis=0)
        return op.add("Slice", whole, one[0], end, one[1], tail="cut")

    return repeated


@lowers("DequantizeLinear", 19)
def _lower_half_result(op: Writer) -> Outcome:
    """The scale is float32, and so is the result before it is cast back."""
    scale_type = op.scope.element_type(op.input(1))
    return _in_float(op, scale_type) if scale_type in HALVES else None


@lowers("DequantizeLinear", 13)
def _lower_dequantize_axis(op: Writer) -> Outcome:
    """What the operator still does is left to it: to know quantized values by, and not to compute them beforehand.

    Where runtimes find float weights beside quantized data they quantize these again, each in its own way.
    """
    if not _per_axis(op):
        return _scalar_parameters(op)
    beside = _beside(op)
    zeros = op.constant_input(2)
    is_one = zeros is not None and zeros.size > 0 and bool((zeros == zeros.reshape(-1)[0]).all())
    if op.scope.target_opset < 10 or (op.input(2) and not is_one and op.scope.element_type(op.input(0)) not in _BYTES):
        return _dequantized(op, beside)
    one = op.constant(1.0, TensorProto.FLOAT, "unit_scale")
    if is_one:
        zero = op.scope.add_constant(zeros.reshape(-1)[0], "zero_point")
        data = op.add("DequantizeLinear", op.input(0), one, zero, tail="difference")
        op.scope.release(op.input(2))
    else:
        data = op.add("DequantizeLinear", op.input(0), one, tail="numbers")
        if op.input(2):
            zero = op.add("DequantizeLinear", beside(op.input(2)), one, tail="zero")
            data = op.add("Sub", data, zero, tail="difference")
    return op.yields("Mul", data, beside(op.input(1)))


def _scalar_parameters(op: Writer) -> Outcome:
    """One scale, as a scalar: the vector of one element is a form that came with the axis."""
    op.drop("axis")
    for index in range(1, len(op.node.input)):
        name = op.node.input[index]
        if name and op.scope.needed_rank(name) == 1:
            value = op.scope.constant(name)
            shape = op.integers(np.zeros(0), "scalar")
            if value is not None:
                op.node.input[index] = op.scope.add_constant(value.reshape(()), name.rpartition("/")[2])
            else:
                op.node.input[index] = op.add("Reshape", name, shape)
    return [*op.nodes, op.node] if op.nodes else None


@expresses("DequantizeLinear", opset=9, reads=10)
def _dequantize(op: Writer) -> list[NodeProto]:
    return _dequantized(op, lambda name: name)


def _dequantized(op: Writer, beside: Callable[[str], str]) -> list[NodeProto]:
    """(x - zero point) * scale in float32, cast to the element type of the scale."""
    scale_type = op.element_type(1)
    data = op.input(0)
    zeros = op.constant_input(2)
    # The zero point of floats of 8 bits and fewer is zero.
    is_zero = element_type_name(op.scope.needed_element_type(data)).startswith("float") or (
        zeros is not None and not zeros.any()
    )
    if not op.input(2) or is_zero:
        data = op.add("Cast", data, tail="numbers", to=TensorProto.FLOAT)
    else:
        # Float32 holds the differences of narrow types; those of int32 may overflow, as they do in runtimes.
        exact = TensorProto.INT32 if op.element_type(0) == TensorProto.INT32 else TensorProto.FLOAT
        data = op.add("Cast", data, tail="integers", to=exact)
        zero = op.add("Cast", beside(op.input(2)), tail="zero", to=exact)
        data = op.cast(op.add("Sub", data, zero, tail="difference"), exact, TensorProto.FLOAT, "numbers")
    if is_zero:
        op.scope.release(op.input(2))
    scale = op.cast(beside(op.input(1)), scale_type, TensorProto.FLOAT, "scale")
    return op.yields_cast(op.add("Mul", data, scale, tail="product"), TensorProto.FLOAT, scale_type)


@lowers("QuantizeLinear", 13)
def _lower_quantize_axis(op: Writer) -> Outcome:
    if _per_axis(op):
        return _quantized(op, _beside(op))
    return _scalar_parameters(op)


@expresses("QuantizeLinear", opset=12, reads=10)
def _quantize(op: Writer) -> list[NodeProto]:
    return _quantized(op, lambda name: name)


def _quantized(op: Writer, beside: Callable[[str], str]) -> list[NodeProto]:
    """Round(x / scale) + zero point, brought into the range of the narrow type."""
    goal = op.scope.needed_element_type(op.input(2)) if op.input(2) else TensorProto.UINT8
    goal = int(op.attribute("output_dtype", 0)) or goal
    data = op.cast(op.input(0), op.element_type(0), TensorProto.FLOAT, "numbers")
    scale = op.cast(beside(op.input(1)), op.element_type(1), TensorProto.FLOAT, "scale")
    zero = beside(op.input(2)) if op.input(2) else ""
    return _saturated(op, op.add("Div", data, scale, tail="scaled"), zero, goal)


def _saturated(op: Writer, data: str, zero: str, element_type: int) -> list[NodeProto]:
    """Append what rounds float32 data, adds a zero point if there is one, and brings it into the range of a type.

    Refused where that is no type of whole numbers of 8 or 16 bits.
    """
    if element_type not in _BYTES + _SHORTS:
        raise RefusedError(
            f"it quantizes to {element_type_name(element_type)}, and opset {op.scope.target_opset} has no such type"
        )
    data = _whole(op, data)
    known = op.scope.constant(zero) if zero else None
    if known is not None and not known.any():
        op.scope.release(op.input(2))
        zero = ""
    if zero:
        data = op.add("Add", data, op.add("Cast", zero, tail="zero", to=TensorProto.FLOAT), tail="shifted")
    bounds = [op.constant(bound, TensorProto.FLOAT, "bound") for bound in whole_range(element_type)]
    return op.yields("Cast", op.add("Clip", data, *bounds), to=element_type)


def _whole(op: Writer, data: str) -> str:
    return op.add("Round", data, tail="rounded") if op.scope.target_opset >= 11 else _rounded(op, data)


def _rounded(op: Writer, data: str) -> str:
    """Append what rounds float32 numbers that are to be saturated, halves to even: one is added to the floor, or not.

    What lies beyond 2^17 is out of every range. Above an odd floor a half goes up, which is 2^-24 away from the next
    number below it.
    """
    half, step = (op.constant(value, TensorProto.FLOAT, tail) for value, tail in ((0.5, "half"), (2.0**-23, "step")))
    bounds = [op.constant(bound, TensorProto.FLOAT, "far") for bound in (-(2.0**17), 2.0**17)]
    data = op.add("Clip", data, *bounds, tail="near")
    floor = op.add("Floor", data)
    halved = op.add("Mul", floor, half, tail="halved")
    odd = op.add("Sub", halved, op.add("Floor", halved), tail="half_if_odd")
    limit = op.add("Sub", half, op.add("Mul", odd, step), tail="limit")
    goes_up = op.add("Less", limit, op.add("Sub", data, floor, tail="rest"), tail="goes_up")
    return op.add("Add", floor, op.add("Cast", goes_up, to=TensorProto.FLOAT), tail="rounded")
