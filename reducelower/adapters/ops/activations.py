"""Gelu and the other activations whose bodies are better written by hand.

Sources: https://onnx.ai/onnx/operators/onnx__Gelu.html (20), https://onnx.ai/onnx/operators/onnx__Celu.html (12),
https://onnx.ai/onnx/operators/onnx__Shrink.html (9).
"""

from __future__ import annotations

import math

from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.model.attributes import value_of
from reducelower.model.numbers import FLOATS, UNSIGNED
from reducelower.scope.scope import Scope

__all__: list[str] = []


@expresses("Gelu", opset=13)
def _gelu(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """Half of x * (1 + erf(x / sqrt(2))), or its tanh approximation, in the form that runtimes recognize."""
    body = Writer(node, scope)
    data = node.input[0]
    element_type = scope.needed_element_type(data)

    def number(value: float, tail: str) -> str:
        return body.constant(value, element_type, tail)

    if value_of(node, "approximate", "none") == "tanh":
        cube = body.add("Pow", data, number(3.0, "three"), tail="cube")
        inner = body.add("Add", data, body.add("Mul", cube, number(0.044715, "cubic")), tail="inner")
        bent = body.add("Tanh", body.add("Mul", inner, number(math.sqrt(2 / math.pi), "sqrt_two_over_pi")))
    else:
        bent = body.add("Erf", body.add("Div", data, number(math.sqrt(2.0), "sqrt_two")))
    shifted = body.add("Add", bent, number(1.0, "one"), tail="shifted")
    # Halved first: the data times something up to two may lie beyond the largest number.
    halved = body.add("Mul", data, number(0.5, "half"), tail="halved")
    return body.yields("Mul", halved, shifted)


@expresses("Celu", opset=8)
def _celu(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """What is above zero, plus alpha * (exp(x / alpha) - 1) of what is below it; alpha may be negative.

    The schema's body sends what is above zero through x / alpha * alpha, which may overflow, and takes scalars for
    vectors.
    """
    body = Writer(node, scope)
    data = node.input[0]
    element_type = scope.needed_element_type(data)
    alpha = body.constant(value_of(node, "alpha", 1.0), element_type, "alpha")
    below = body.add("Neg", body.add("Relu", body.add("Neg", data, tail="turned"), tail="depth"), tail="below")
    exponential = body.add("Exp", body.add("Div", below, alpha, tail="scaled"))
    less_one = body.add("Sub", exponential, body.constant(1.0, element_type, "one"), tail="less_one")
    return body.yields("Add", body.add("Relu", data, tail="above"), body.add("Mul", less_one, alpha, tail="bent"))


@expresses("Shrink", opset=9)
def _shrink(node: NodeProto, scope: Scope) -> list[NodeProto] | None:
    """Whole numbers are shifted by a bias that is none before the result is cut to a whole number.

    The schema's body would cut the bias itself, and negate unsigned numbers; it serves everything else.
    """
    element_type = scope.needed_element_type(node.input[0])
    is_exact = float(value_of(node, "bias", 0.0)).is_integer() and value_of(node, "lambd", 0.5) >= 0
    if element_type in FLOATS or (is_exact and element_type not in UNSIGNED):
        return None
    body = Writer(node, scope)
    wide = body.add("Cast", node.input[0], tail="wide", to=TensorProto.DOUBLE)
    lambd = value_of(node, "lambd", 0.5)
    bias, high, low = (
        body.constant(value, TensorProto.DOUBLE, tail)
        for value, tail in ((value_of(node, "bias", 0.0), "bias"), (lambd, "high"), (-lambd, "low"))
    )
    # Whole numbers are what is chosen between, for want of a Where for others below opset 9.
    less, more = (
        body.cast(body.add(op_type, wide, bias), TensorProto.DOUBLE, element_type, tail)
        for op_type, tail in (("Sub", "less"), ("Add", "more"))
    )
    is_high = body.add("Greater", wide, high, tail="is_high")
    above = body.add("Where", is_high, less, body.constant(0, element_type, "zero"), tail="above")
    return body.yields("Where", body.add("Less", wide, low, tail="is_low"), more, above)
