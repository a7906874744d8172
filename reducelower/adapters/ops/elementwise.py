"""IsInf below opset 10 and Round below opset 11, and Identity of sequences below opset 14.

Sources: https://onnx.ai/onnx/operators/onnx__IsInf.html (10), https://onnx.ai/onnx/operators/onnx__Round.html (11),
https://onnx.ai/onnx/operators/onnx__Identity.html (13, 14).
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TypeProto, defs, helper

from reducelower.adapters.builder import Writer
from reducelower.adapters.casts import Fitted, retypes_container
from reducelower.adapters.decompose import expresses
from reducelower.model.attributes import value_of
from reducelower.model.numbers import largest_finite
from reducelower.scope.scope import Scope

__all__: list[str] = []


@expresses("IsInf", opset=9)
def _is_inf(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """What lies beyond the largest finite number."""
    body = Writer(node, scope)
    data = node.input[0]
    element_type = scope.needed_element_type(data)
    largest = largest_finite(element_type)
    sides = [
        (op_type, body.constant(bound, element_type, tail))
        for attribute, op_type, bound, tail in (
            ("detect_positive", "Greater", largest, "largest"),
            ("detect_negative", "Less", -largest, "lowest"),
        )
        if value_of(node, attribute, 1)
    ]
    if not sides:
        # Nothing is beyond itself.
        return body.yields("Less", data, data)
    if len(sides) == 1:
        return body.yields(sides[0][0], data, sides[0][1])
    return body.yields("Or", *(body.add(op_type, data, bound) for op_type, bound in sides))


@expresses("Round", opset=9)
def _round(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """The floor or the number after it, whichever is nearer; halfway between them, the even one.

    What rounds to zero keeps its sign, as the data times zero has it.
    """
    body = Writer(node, scope)
    data = node.input[0]
    element_type = scope.needed_element_type(data)
    values = ((0.0, "zero"), (0.5, "half"), (1.0, "one"), (2.0, "two"))
    zero, half, one, two = (body.constant(value, element_type, tail) for value, tail in values)
    floor = body.add("Floor", data)
    above = body.add("Add", floor, one, tail="above")
    even = body.add("Mul", body.add("Floor", body.add("Mul", above, half, tail="halved")), two, tail="even")
    rest = body.add("Sub", data, floor, tail="rest")
    upward = body.add("Where", body.add("Less", half, rest, tail="is_above"), above, even, tail="upward")
    nearest = body.add("Where", body.add("Less", rest, half, tail="is_below"), floor, upward, tail="nearest")
    # onnxruntime 1.31 takes 0 for a negative zero of the first operand, and keeps that of the second.
    is_more = body.add("Less", half, body.add("Abs", nearest), tail="is_more")
    return body.yields("Where", is_more, nearest, body.add("Mul", data, zero, tail="signed_zero"))


@retypes_container("Identity")
def _identity(node: NodeProto, scope: Scope, container: TypeProto, goal: defs.OpSchema) -> Fitted | None:
    """A sequence with something put in at its end and taken out again."""
    if container.WhichOneof("value") != "sequence_type":
        return None
    element_type = container.sequence_type.elem_type.tensor_type.elem_type
    body = Writer(node, scope)
    dtype = helper.tensor_dtype_to_np_dtype(element_type)
    something = scope.add_constant(np.zeros([0], dtype), "something")
    longer = body.add("SequenceInsert", node.input[0], something, tail="longer")
    return body.yields("SequenceErase", longer), None, []
