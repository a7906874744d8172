"""Pow of mixed types, Mod, and the missing C of Gemm.

Sources: https://onnx.ai/onnx/operators/onnx__Pow.html (7, 12),
https://onnx.ai/onnx/operators/onnx__Mod.html (10, 13, 28), https://onnx.ai/onnx/operators/onnx__Gemm.html (7, 9, 11).
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto, helper

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.registry import Outcome, lowers
from reducelower.errors import RefusedError
from reducelower.model.numbers import FLOATS, UNSIGNED
from reducelower.scope.scope import Scope

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
            return _spread(op, last, value.ndim, op.scope, base, op.node)
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


def _spread(op: Writer, nodes: list[NodeProto], ndim: int, scope: Scope, base: str, node: NodeProto) -> Outcome:
    """An exponent of more dimensions than the base adds some in front."""
    rank = scope.rank(base)
    if rank is not None and rank >= ndim:
        return nodes
    element_type = scope.needed_element_type(base)
    one = op.constant(np.ones([1] * ndim), element_type, "one")
    made = nodes[-1]
    inner = scope.fresh(node.name or node.output[0], "/Pow/product")
    made.output[0] = inner
    made.name = inner
    return op.yields("Mul", inner, one)


def _floored(op: Writer, remainder: str, divisor: str, zero: str) -> list[NodeProto]:
    """The remainder with the sign of the divisor, from the one with the sign of the dividend.

    This is how Python and numpy compute it: exact but for one addition.
    """
    signs = [op.add("Less", name, zero, tail=tail) for name, tail in ((remainder, "below"), (divisor, "negative"))]
    differ = op.add("Xor", *signs, tail="differ")
    is_zero = op.add("Equal", remainder, zero, tail="is_zero")
    moves = op.add("And", differ, op.add("Not", is_zero, tail="is_left"), tail="moves")
    return op.yields("Where", moves, op.add("Add", remainder, divisor, tail="moved"), remainder)


@lowers("Mod", 28)
def _lower_float_mod(op: Writer) -> Outcome:
    """Floats had to be divided with fmod=1, whose result has the sign of the dividend."""
    if op.attribute("fmod", 0):
        return None
    element_type = op.element_type(0)
    if element_type not in FLOATS:
        return None
    remainder = op.add("Mod", *op.node.input, tail="remainder", fmod=1)
    return _floored(op, remainder, op.input(1), op.constant(0, element_type, "zero"))


@expresses("Mod", opset=13)
def _mod(op: Writer) -> list[NodeProto] | None:
    """Integers: what is left after the quotient that Div truncates."""
    element_type = op.element_type(0)
    if element_type in FLOATS:
        return None
    one, other = op.node.input
    whole = op.add("Mul", op.add("Div", one, other, tail="quotient"), other, tail="whole")
    if op.attribute("fmod", 0) or element_type in UNSIGNED:
        return op.yields("Sub", one, whole)
    remainder = op.add("Sub", one, whole, tail="remainder")
    return _floored(op, remainder, other, op.constant(0, element_type, "zero"))


@lowers("Gemm", 11)
def _lower_gemm(op: Writer) -> Outcome:
    """C was required; adding minus zero changes nothing, not even the sign of a zero."""
    if op.input(2):
        return None
    element_type = op.element_type(0)
    del op.node.input[2:]
    op.node.input.append(op.constant([-0.0], element_type, "no_c"))
    op.set("beta", 1.0)
    return None
