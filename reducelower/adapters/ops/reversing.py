"""ReverseSequence where the target has none: each element's place counted from the end of its sequence.

Source: https://onnx.ai/onnx/operators/onnx__ReverseSequence.html (10).
"""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import TO_THE_END, Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.ops.slicing import ramp
from reducelower.model.attributes import value_of
from reducelower.scope.scope import Scope

__all__: list[str] = []

_INT64 = TensorProto.INT64


@expresses("ReverseSequence", opset=10, reads=10)
def _reverse_sequence(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """The steps of all sequences as one row of rows, gathered by computed places."""
    body = Writer(node, scope)
    rank = scope.needed_rank(node.input[0])
    turned = [1, 0, *range(2, rank)] if int(value_of(node, "time_axis", 0)) == 0 else []
    data = body.add("Transpose", node.input[0], tail="turned", perm=turned) if turned else node.input[0]
    sizes = body.add("Shape", data, tail="sizes")

    column = body.constant([-1, 1], _INT64, "column")
    batch = ramp(body, body.add("Gather", sizes, body.number(0), tail="batch", axis=0))
    time = body.add("Gather", sizes, body.number(1), tail="time", axis=0)
    step = ramp(body, time)
    length = body.add("Reshape", node.input[1], column, tail="lengths")
    last = body.add("Sub", length, body.number(1), tail="last")
    inside = body.add("Less", step, length, tail="is_inside")
    place = body.add("Where", inside, body.add("Sub", last, step, tail="from_the_end"), step, tail="place")
    start = body.add("Mul", body.add("Reshape", batch, column, tail="row"), time, tail="start")
    rest = body.add("Slice", sizes, body.number(2), body.number(TO_THE_END), tail="rest")
    rows = body.add("Reshape", data, body.add("Concat", body.number(-1), rest, tail="row_shape", axis=0), tail="rows")
    places = body.add("Add", start, place, tail="places")
    if not turned:
        return body.yields("Gather", rows, places, axis=0)
    return body.yields("Transpose", body.add("Gather", rows, places, tail="reversed", axis=0), perm=turned)
