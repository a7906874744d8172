"""Pow of mixed types, Mod, the missing C of Gemm, and what works on bits, by 64-bit arithmetic.

Casts between integers keep the low bits, and int64 wraps around, so that sums and products are right in their low bits
whatever the signs.

Sources: the pages of Pow (7, 12), Mod (10, 13, 28), Gemm (7, 9, 11), BitShift (11, 28), BitwiseAnd (18), BitwiseNot
(18).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, defs, helper

from reducelower.adapters.builder import Writer
from reducelower.adapters.casts import Fitted, refusal, retypes
from reducelower.adapters.decompose import expresses
from reducelower.adapters.registry import Outcome, lowers
from reducelower.errors import RefusedError
from reducelower.model.numbers import FLOATS, SIGNED, UNSIGNED, whole_range

_LARGEST_POWER = 8


@lowers("Pow", 12)
def _lower_pow(op: Writer) -> Outcome:
    """Base and exponent had to be of one type, a float.

    Powers of integers by a small constant are products. Others go through double, where runtimes compute them.
    """
    base, exponent = op.node.input
    base_type, exponent_type = op.scope.needed_element_type(base), op.scope.needed_element_type(exponent)
    value = op.scope.constant(exponent)
    if base_type in FLOATS:
        if base_type == exponent_type:
            return None
        if value is not None:
            dtype = helper.tensor_dtype_to_np_dtype(base_type)
            if (value.astype(dtype).astype(np.float64) == value.astype(np.float64)).all():
                op.scope.release(exponent)
                op.node.input[1] = op.scope.add_constant(value.astype(dtype), "exponent")
                return None
    elif value is not None and value.size == 1 and float(value.item()) in range(1, _LARGEST_POWER + 1):
        op.scope.release(exponent)
        product = base
        for _ in range(int(value.item()) - 2):
            product = op.add("Mul", product, base, tail="power")
        last = op.yields("Mul", product, base) if value.item() > 1 else op.yields("Identity", base)
        if value.ndim:
            return _spread(op, last, value.ndim)
        return last
    if TensorProto.INT64 in (base_type, exponent_type) and base_type not in FLOATS:
        raise RefusedError(
            "it takes 64-bit integers to a power computed at run time, which no float type holds exactly",
            "opset 12 is the oldest that does",
        )
    double = TensorProto.DOUBLE
    operands = [
        op.cast(name, found, double, tail)
        for name, found, tail in ((base, base_type, "base"), (exponent, exponent_type, "exponent"))
    ]
    return op.yields_cast(op.add("Pow", *operands), double, base_type)


def _spread(op: Writer, nodes: list[NodeProto], ndim: int) -> Outcome:
    """An exponent of more dimensions than the base adds some in front."""
    rank = op.scope.rank(op.input(0))
    if rank is not None and rank >= ndim:
        return nodes
    one = op.constant(np.ones([1] * ndim), op.element_type(0), "one")
    nodes[-1].name = nodes[-1].output[0] = op.fresh("product")
    return op.yields("Mul", nodes[-1].name, one)


_INT64, _UINT64 = TensorProto.INT64, TensorProto.UINT64


def _bits(element_type: int) -> int:
    return int(helper.tensor_dtype_to_np_dtype(element_type).itemsize * 8)


def _powers(count: int) -> np.ndarray:
    """Powers of two as int64; the last of 64 wraps around to the lowest number, which is right in its low bits."""
    return (np.uint64(1) << np.arange(count, dtype=np.uint64)).astype(np.int64)


@retypes("BitShift")
def _signed(op: Writer, element_type: int, goal: defs.OpSchema) -> Fitted:
    """Signed integers, which opset 28 brought."""
    if element_type not in SIGNED:
        raise refusal(op, element_type)
    return _shift(op), None, []


def _shift(op: Writer) -> list[NodeProto]:
    """A product with, or a quotient by, a power of two; beyond the length of the type nothing is left but the sign."""
    element_type = op.element_type(0)
    count = _bits(element_type)
    is_left = op.attribute("direction") == "LEFT"
    is_unsigned_quotient = element_type == _UINT64 and not is_left
    zero = op.integers(0, "zero")
    distance: Any = op.constant_input(1)
    inside = distance is not None and bool(((distance >= 0) & (distance < count)).all())
    by = op.cast(op.input(1), element_type, _INT64, "distance")
    is_short = ""
    if not inside:
        is_short = op.add(
            "And",
            op.add("Not", op.add("Less", by, zero, tail="is_backward"), tail="is_forward"),
            op.add("Less", by, op.integers(count, "bits"), tail="is_within"),
            tail="is_short",
        )
        by = op.add("Where", is_short, by, zero, tail="short_distance")
    table = _powers(count).astype(np.uint64) if is_unsigned_quotient else _powers(count)
    power = op.add("Gather", op.scope.add_constant(table, "powers_of_two"), by, tail="power", axis=0)
    if is_unsigned_quotient:
        result = op.add("Div", op.input(0), power, tail="shifted")
        if is_short:
            # Zeros of this type come from a cast: no runtime has a Where for it.
            kept = op.add("Cast", is_short, tail="kept", to=_UINT64)
            result = op.add("Mul", result, kept, tail="left_over")
        return op.yields_value(result)
    data = op.cast(op.input(0), element_type, _INT64, "data")
    if is_left:
        result, rest = op.add("Mul", data, power, tail="shifted"), zero
    elif element_type in UNSIGNED:
        result, rest = op.add("Div", data, power, tail="shifted"), zero
    else:
        # The quotient is rounded down, which for what is negative is the complement of that of its complement.
        minus_one = op.integers(-1, "minus_one")
        is_negative = op.add("Less", data, zero, tail="is_negative")
        complement = op.add("Div", op.add("Sub", minus_one, data, tail="complement"), power, tail="turned")
        below = op.add("Sub", minus_one, complement, tail="below")
        result = op.add("Where", is_negative, below, op.add("Div", data, power, tail="above"), tail="shifted")
        rest = op.add("Where", is_negative, minus_one, zero, tail="sign")
    if is_short:
        result = op.add("Where", is_short, result, rest, tail="result")
    return op.yields_cast(result, _INT64, element_type)


expresses("BitShift", opset=13)(_shift)


@expresses("BitwiseAnd", "BitwiseOr", "BitwiseXor", opset=13)
def _combined(op: Writer) -> list[NodeProto]:
    """The bits that both have, weighed; a or b is a + b less those, and a xor b is a + b less those twice."""
    element_type = op.element_type(0)
    one, other = (
        op.cast(name, element_type, _INT64, tail) for name, tail in zip(op.node.input, ("a", "b"), strict=True)
    )
    powers = _powers(_bits(element_type))
    if element_type in SIGNED:
        powers[-1] = whole_range(element_type)[0]
    both = op.add("Mul", *(_unpacked(op, name, len(powers)) for name in (one, other)), tail="both_bits")
    # A product with the weights rather than a sum, which onnxruntime 1.31 rounds for large integers; with a matrix
    # rather than a vector, by which that multiplies no data without elements.
    both = op.add("MatMul", both, op.scope.add_constant(powers[:, None], "weights"), tail="weighed")
    both = op.add("Squeeze", both, op.integers([-1], "axes_m1"), tail="both")
    if op.node.op_type == "BitwiseAnd":
        return op.yields_cast(both, _INT64, element_type)
    result = op.add("Sub", op.add("Add", one, other, tail="sum"), both, tail="either")
    if op.node.op_type == "BitwiseXor":
        result = op.add("Sub", result, both, tail="one_of_them")
    return op.yields_cast(result, _INT64, element_type)


def _unpacked(op: Writer, name: str, count: int) -> str:
    """The bits of int64 numbers along a new last axis, the lowest first; of negative ones by their complement."""
    zero, one, two = (op.integers(value, tail) for value, tail in ((0, "zero"), (1, "one"), (2, "two")))
    column = op.add("Unsqueeze", name, op.integers([-1], "axes_m1"), tail="column")
    is_negative = op.add("Less", column, zero, tail="is_negative")
    complement = op.add("Sub", op.integers(-1, "minus_one"), column, tail="complement")
    magnitude = op.add("Where", is_negative, complement, column, tail="magnitude")
    shifted = op.add("Div", magnitude, op.scope.add_constant(_powers(count), "powers_of_two"), tail="shifted")
    halved = op.add("Mul", op.add("Div", shifted, two, tail="halved"), two, tail="even")
    bits = op.add("Sub", shifted, halved, tail="bits")
    return op.add("Where", is_negative, op.add("Sub", one, bits, tail="turned"), bits, tail="unpacked")
