"""BitShift of signed integers, which opset 28 brought.

Source: https://onnx.ai/onnx/operators/onnx__BitShift.html (11, 28).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, defs, helper

from reducelower.adapters.builder import Writer
from reducelower.adapters.casts import Fitted, refusal, retypes
from reducelower.errors import RefusedError
from reducelower.model.attributes import value_of
from reducelower.scope.scope import Scope

__all__: list[str] = []

_INT64, _UINT64 = TensorProto.INT64, TensorProto.UINT64
_SIGNED = (TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, _INT64)


@retypes("BitShift")
def _signed(node: NodeProto, scope: Scope, element_type: int, goal: defs.OpSchema) -> Fitted:
    """The same bits as an unsigned 64-bit number; what is negative is shifted right as its complement.

    Only distances that are known and shorter than the type: others meant nothing before opset 28.
    """
    if element_type not in _SIGNED:
        raise refusal(node, scope, element_type)
    body = Writer(node, scope)
    distance: Any = body.constant_input(1)
    bits = helper.tensor_dtype_to_np_dtype(element_type).itemsize * 8
    if distance is None or (distance < 0).any() or (distance >= bits).any():
        raise RefusedError(
            f"it shifts {bits}-bit signed integers by distances that are not known to lie between 0 and {bits - 1}",
            "opset 28 is the oldest that has a meaning for others",
        )
    scope.release(node.input[1])
    by = body.constant(np.asarray(distance), _UINT64, "distance")
    direction = value_of(node, "direction")
    data = body.add("Cast", node.input[0], tail="int64", to=_INT64)

    def shifted(name: str, tail: str) -> str:
        plain = body.add("Cast", name, tail=f"{tail}_bits", to=_UINT64)
        moved = body.add("BitShift", plain, by, tail=f"{tail}_shifted", direction=direction)
        return body.add("Cast", moved, tail=f"{tail}_signed", to=_INT64)

    result = shifted(data, "data")
    if direction == "RIGHT":
        minus_one, zero = (body.constant(value, _INT64, tail) for value, tail in ((-1, "minus_one"), (0, "zero")))
        complement = shifted(body.add("Sub", minus_one, data, tail="complement"), "complement")
        below = body.add("Sub", minus_one, complement, tail="below")
        is_negative = body.add("Less", data, zero, tail="is_negative")
        result = body.add("Where", is_negative, below, result, tail="either")
    return body.yields("Cast", result, to=element_type), None, []
