"""HannWindow, HammingWindow and BlackmanWindow where the target has none: sums of cosines.

The schemas' bodies compute in float32 whatever is asked for; here it is the element type of the result where that is
double.

Sources: https://onnx.ai/onnx/operators/onnx__HannWindow.html (17),
https://onnx.ai/onnx/operators/onnx__HammingWindow.html (17),
https://onnx.ai/onnx/operators/onnx__BlackmanWindow.html (17).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.model.attributes import value_of
from reducelower.scope.scope import Scope

__all__: list[str] = []

_COEFFICIENTS: Mapping[str, tuple[float, float, float]] = {
    "HannWindow": (0.5, 0.5, 0.0),
    "HammingWindow": (25 / 46, 21 / 46, 0.0),
    "BlackmanWindow": (0.42, 0.5, 0.08),
}
"""A window is a0 - a1 cos(t) + a2 cos(2t), where t goes around the circle once."""


@expresses(*_COEFFICIENTS, opset=13)
def _window(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """The angles are those of size places from 0 on, in steps of 1/size, or of 1/(size - 1) where it is symmetric."""
    a0, a1, a2 = _COEFFICIENTS[node.op_type]
    wanted = int(value_of(node, "output_datatype", TensorProto.FLOAT))
    element_type = TensorProto.DOUBLE if wanted == TensorProto.DOUBLE else TensorProto.FLOAT
    body = Writer(node, scope)

    def number(value: float, tail: str) -> str:
        return body.constant(value, element_type, tail)

    size = body.add("Cast", node.input[0], tail="size", to=element_type)
    places = body.add("Range", number(0, "zero"), size, number(1, "one"), tail="places")
    span = size if value_of(node, "periodic", 1) else body.add("Sub", size, number(1, "one"), tail="span")
    angles = body.add("Mul", places, body.add("Div", number(math.tau, "tau"), span, tail="step"), tail="angles")
    window = body.add("Mul", body.add("Cos", angles), number(a1, "a1"), tail="first")
    window = body.add("Sub", number(a0, "a0"), window, tail="falling")
    if a2:
        doubled = body.add("Cos", body.add("Mul", angles, number(2, "two"), tail="doubled"), tail="second")
        window = body.add("Add", window, body.add("Mul", doubled, number(a2, "a2"), tail="second_part"), tail="window")
    return body.yields("Cast", window, to=wanted)
