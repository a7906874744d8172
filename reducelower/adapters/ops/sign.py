"""Sign where the target has none.

Source: https://onnx.ai/onnx/operators/onnx__Sign.html (9).
"""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.model.numbers import FLOATS
from reducelower.scope.scope import Scope

__all__: list[str] = []


@expresses("Sign", opset=8)
def _sign(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """Whether it is positive less whether it is negative; what is no number has no sign.

    Integers are compared as float32, which rounds them and keeps their signs: comparisons took floats only.
    """
    element_type = scope.needed_element_type(node.input[0])
    body = Writer(node, scope)
    data, is_float = node.input[0], element_type in FLOATS
    numbers = element_type if is_float else TensorProto.FLOAT
    if not is_float:
        data = body.add("Cast", data, tail="numbers", to=numbers)
    zero = body.constant(0, numbers, "zero")
    positive, negative = (
        body.add("Cast", body.add(op_type, data, zero), to=numbers) for op_type in ("Greater", "Less")
    )
    if not is_float:
        return body.yields("Cast", body.add("Sub", positive, negative, tail="sign"), to=element_type)
    # Every number lies below one or above minus one. For what is neither, the sign becomes zero by zero.
    one, minus_one = body.constant(1, numbers, "one"), body.constant(-1, numbers, "minus_one")
    sides = body.add("Less", data, one, tail="is_low"), body.add("Greater", data, minus_one, tail="is_high")
    is_number = body.add("Cast", body.add("Or", *sides, tail="is_number"), tail="counts", to=numbers)
    return body.yields("Div", body.add("Sub", positive, negative, tail="sign"), is_number)
