"""ConvInteger, QLinearConv and QLinearMatMul where the target has none: exact sums of products of 8-bit integers.

Convolution is for floats only. Differences to zero points, their products and their sums are whole numbers that float32
holds as long as they stay within 24 bits; where a sum could grow beyond, the weights are cut into pieces of fewer bits,
each is convolved by itself, and the results are added up in int32.

Sources: the pages of ConvInteger (10), QLinearConv (10), QLinearMatMul (10).
"""

from __future__ import annotations

from math import prod

from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.ops.quantization import by_row, saturated
from reducelower.errors import RefusedError

_FLOAT, _INT32, _INT64 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64
_EXACT = 1 << 24
_BYTE = 255


@expresses("ConvInteger", opset=9)
def _conv_integer(op: Writer) -> list[NodeProto]:
    shape = op.shape(1)
    if shape is None or None in shape[1:]:
        raise RefusedError("how many products it adds up is not known", "opset 10 is the oldest that has ConvInteger")
    count = prod(size or 0 for size in shape[1:])
    bits = next((bits for bits in (8, 4, 2, 1) if _BYTE * (1 << bits) * count <= _EXACT), None)
    if bits is None:
        raise RefusedError(f"it adds up {count} products, more than floats hold exactly")
    data = _difference(op, 0, 2, 0)
    pieces = _pieces(op, _difference(op, 1, 3, len(shape) - 1), bits)
    total = ""
    for place, piece in enumerate(pieces):
        sums = op.add("Conv", data, piece, tail="sums", copied=op.node.attribute)
        whole = op.add("Cast", sums, tail="whole", to=_INT32)
        if place:
            whole = op.add("Mul", whole, op.constant(1 << bits * place, _INT32, "weight"), tail="weighted")
        total = op.add("Add", total, whole, tail="total") if total else whole
    return op.yields_value(total)


def _difference(op: Writer, index: int, zero_index: int, trailing: int) -> str:
    """An input less its zero point, which may be one per row, as float32."""
    data = op.add("Cast", op.input(index), tail="numbers", to=_FLOAT)
    zero = op.input(zero_index)
    if not zero:
        return data
    zero = op.add("Cast", zero, tail="zero", to=_FLOAT)
    return op.add("Sub", data, _beside(op, zero, op.input(zero_index), trailing), tail="difference")


def _beside(op: Writer, name: str, source: str, trailing: int) -> str:
    """A value per row, as given by `source`, along the rows of what has so many dimensions behind them."""
    if op.scope.shape(source) in ((), (1,)) or not trailing:
        return name
    return op.add("Reshape", name, op.integers([-1] + [1] * trailing, "column"), tail="column")


def _pieces(op: Writer, weights: str, bits: int) -> list[str]:
    """Whole numbers as the sum of pieces of so many bits, the lowest first; the last has the sign."""
    if bits == 8:
        return [weights]
    base = op.constant(float(1 << bits), _FLOAT, "base")
    found = []
    for _ in range(8 // bits - 1):
        higher = op.add("Floor", op.add("Div", weights, base, tail="shifted"), tail="higher")
        found.append(op.add("Sub", weights, op.add("Mul", higher, base, tail="rest"), tail="piece"))
        weights = higher
    return [*found, weights]


@expresses("QLinearConv", opset=12)
def _qlinear_conv(op: Writer) -> list[NodeProto]:
    """Round(sum * (x scale * w scale / y scale)) + y zero point, brought into the range of the narrow type."""
    data, data_scale, data_zero, weights, weight_scale, weight_zero = op.node.input[:6]
    trailing = op.scope.needed_rank(weights) - 2
    total = op.add("ConvInteger", data, weights, data_zero, weight_zero, tail="sums", copied=op.node.attribute)
    if op.input(8):
        total = op.add("Add", total, _beside(op, op.input(8), op.input(8), trailing), tail="biased")
    scale = op.add("Mul", data_scale, _beside(op, weight_scale, weight_scale, trailing), tail="scales")
    return _requantized(op, total, op.add("Div", scale, op.input(6), tail="scale"), op.input(7))


@expresses("QLinearMatMul", opset=12, reads=10)
def _qlinear_matmul(op: Writer) -> list[NodeProto]:
    left, left_scale, left_zero, right, right_scale, right_zero, scale, zero = op.node.input
    total = op.add("MatMulInteger", left, right, left_zero, right_zero, tail="sums")
    left_scale = by_row(op, left_scale, left_scale)
    scales = op.add("Mul", left_scale, right_scale, tail="scales")
    return _requantized(op, total, op.add("Div", scales, scale, tail="scale"), zero)


def _requantized(op: Writer, total: str, scale: str, zero: str) -> list[NodeProto]:
    numbers = op.add("Mul", op.add("Cast", total, tail="numbers", to=_FLOAT), scale, tail="scaled")
    return saturated(op, numbers, zero, op.scope.needed_element_type(zero))
