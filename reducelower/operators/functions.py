"""Functions of real numbers that a target lacks, written with ones that it has.

Only where that is exact to a few units in the last place over the whole domain; what the textbook form would lose near
zero, or overflow far from it, is why there are several branches.

Sources: https://onnx.ai/onnx/operators/onnx__Round.html (11), https://onnx.ai/onnx/operators/onnx__Sign.html (9).
"""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from reducelower.absent import expresses
from reducelower.errors import RefusedError
from reducelower.scope import Scope
from reducelower.writing import Writer

__all__: list[str] = []

# From here on numbers have no digits behind the point: adding it to a smaller one rounds halves to even (IEEE 754).
_WHOLE = {int(TensorProto.FLOAT): 2.0**23, int(TensorProto.DOUBLE): 2.0**52}


@expresses("Round", opset=9)
def _round(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """Halves to even: numbers with digits behind the point are shifted to where there are none, and back."""
    body = Writer(node, scope)
    element_type = scope.needed_element_type(node.input[0])
    wide = int(TensorProto.FLOAT) if element_type in (TensorProto.FLOAT16, TensorProto.BFLOAT16) else element_type
    if wide not in _WHOLE:
        raise RefusedError("its element type is not known to round", "opset 11 is the oldest that has Round")
    data = node.input[0]
    if wide != element_type:
        data = body.add("Cast", data, tail="wide", to=wide)
    whole = body.constant(_WHOLE[wide], wide, "whole")
    negative = body.add("Less", data, body.constant(0.0, wide, "zero"))
    away = body.add("Where", negative, body.constant(-_WHOLE[wide], wide, "minus_whole"), whole, tail="away")
    rounded = body.add("Sub", body.add("Add", data, away, tail="shifted"), away, tail="rounded")
    small = body.add("Less", body.add("Abs", data), whole)
    if wide == element_type:
        return body.yields("Where", small, rounded, data)
    return body.yields("Cast", body.add("Where", small, rounded, data), to=element_type)


@expresses("Sign", opset=8)
def _sign(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """Whether it is positive less whether it is negative."""
    element_type = scope.needed_element_type(node.input[0])
    body = Writer(node, scope)
    zero = body.constant(0, element_type, "zero")
    signs = [
        body.add("Cast", body.add(op_type, node.input[0], zero), to=element_type) for op_type in ("Greater", "Less")
    ]
    return body.yields("Sub", *signs)
