"""ConvInteger, QLinearConv and QLinearMatMul where the target has none: exact sums of products of 8-bit integers.

Convolution is for floats only. Differences to zero points, their products and their sums are whole numbers that float32
holds as long as they stay within 24 bits; where a sum could grow beyond, the weights are cut into pieces of fewer bits,
each is convolved by itself, and the results are added up in int32.

Sources: https://onnx.ai/onnx/operators/onnx__ConvInteger.html (10),
https://onnx.ai/onnx/operators/onnx__QLinearConv.html (10),
https://onnx.ai/onnx/operators/onnx__QLinearMatMul.html (10).
"""

from __future__ import annotations

from math import prod

from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.ops.quantization import by_row, saturated
from reducelower.errors import RefusedError
from reducelower.scope.scope import Scope

_FLOAT, _INT32, _INT64 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64
_EXACT = 1 << 24
_BYTE = 255


@expresses("ConvInteger", opset=9)
def _conv_integer(node: NodeProto, scope: Scope) -> list[NodeProto]:
    body = Writer(node, scope)
    shape = scope.shape(node.input[1])
    if shape is None or None in shape[1:]:
        raise RefusedError("how many products it adds up is not known", "opset 10 is the oldest that has ConvInteger")
    count = prod(size or 0 for size in shape[1:])
    bits = next((bits for bits in (8, 4, 2, 1) if _BYTE * (1 << bits) * count <= _EXACT), None)
    if bits is None:
        raise RefusedError(f"it adds up {count} products, more than floats hold exactly")
    data = _difference(body, 0, 2, 0)
    pieces = _pieces(body, _difference(body, 1, 3, len(shape) - 1), bits)
    total = ""
    for place, piece in enumerate(pieces):
        sums = body.add("Conv", data, piece, tail="sums", copied=node.attribute)
        whole = body.add("Cast", sums, tail="whole", to=_INT32)
        if place:
            whole = body.add("Mul", whole, body.constant(1 << bits * place, _INT32, "weight"), tail="weighted")
        total = body.add("Add", total, whole, tail="total") if total else whole
    return body.yields_value(total)


def _difference(body: Writer, index: int, zero_index: int, trailing: int) -> str:
    """An input less its zero point, which may be one per row, as float32."""
    data = body.add("Cast", body.input(index), tail="numbers", to=_FLOAT)
    zero = body.input(zero_index)
    if not zero:
        return data
    zero = body.add("Cast", zero, tail="zero", to=_FLOAT)
    return body.add("Sub", data, _beside(body, zero, body.input(zero_index), trailing), tail="difference")


def _beside(body: Writer, name: str, source: str, trailing: int) -> str:
    """A value per row, as given by `source`, along the rows of what has so many dimensions behind them."""
    if body.scope.shape(source) in ((), (1,)) or not trailing:
        return name
    return body.add("Reshape", name, body.integers([-1] + [1] * trailing, "column"), tail="column")


def _pieces(body: Writer, weights: str, bits: int) -> list[str]:
    """Whole numbers as the sum of pieces of so many bits, the lowest first; the last has the sign."""
    if bits == 8:
        return [weights]
    base = body.constant(float(1 << bits), _FLOAT, "base")
    found = []
    for _ in range(8 // bits - 1):
        higher = body.add("Floor", body.add("Div", weights, base, tail="shifted"), tail="higher")
        found.append(body.add("Sub", weights, body.add("Mul", higher, base, tail="rest"), tail="piece"))
        weights = higher
    return [*found, weights]


@expresses("QLinearConv", opset=12)
def _qlinear_conv(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """Round(sum * (x scale * w scale / y scale)) + y zero point, brought into the range of the narrow type."""
    body = Writer(node, scope)
    data, data_scale, data_zero, weights, weight_scale, weight_zero = node.input[:6]
    trailing = scope.needed_rank(weights) - 2
    total = body.add("ConvInteger", data, weights, data_zero, weight_zero, tail="sums", copied=node.attribute)
    if body.input(8):
        total = body.add("Add", total, _beside(body, body.input(8), body.input(8), trailing), tail="biased")
    scale = body.add("Mul", data_scale, _beside(body, weight_scale, weight_scale, trailing), tail="scales")
    return _requantized(body, total, body.add("Div", scale, node.input[6], tail="scale"), node.input[7])


@expresses("QLinearMatMul", opset=12, reads=10)
def _qlinear_matmul(node: NodeProto, scope: Scope) -> list[NodeProto]:
    body = Writer(node, scope)
    left, left_scale, left_zero, right, right_scale, right_zero, scale, zero = node.input
    total = body.add("MatMulInteger", left, right, left_zero, right_zero, tail="sums")
    left_scale = by_row(body, left_scale, left_scale)
    scales = body.add("Mul", left_scale, right_scale, tail="scales")
    return _requantized(body, total, body.add("Div", scales, scale, tail="scale"), zero)


def _requantized(body: Writer, total: str, scale: str, zero: str) -> list[NodeProto]:
    numbers = body.add("Mul", body.add("Cast", total, tail="numbers", to=_FLOAT), scale, tail="scaled")
    return saturated(body, numbers, zero, body.scope.needed_element_type(zero))
