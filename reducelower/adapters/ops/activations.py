"""Gelu and the other activations whose bodies are better written by hand.

Source: https://onnx.ai/onnx/operators/onnx__Gelu.html (20).
"""

from __future__ import annotations

import math

from onnx import NodeProto

from reducelower.adapters.absent import expresses
from reducelower.adapters.builder import Writer
from reducelower.model.attributes import value_of
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
    return body.yields("Mul", body.add("Mul", data, shifted, tail="doubled"), number(0.5, "half"))
