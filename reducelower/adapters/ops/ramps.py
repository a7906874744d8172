"""Range and Trilu where the target has none: they count.

Sources: https://onnx.ai/onnx/operators/onnx__Range.html (11, 27), https://onnx.ai/onnx/operators/onnx__Trilu.html (14).
"""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.ops.slicing import ramp
from reducelower.model.attributes import value_of
from reducelower.model.numbers import HALVES
from reducelower.scope.scope import Scope

_INT64, _DOUBLE = TensorProto.INT64, TensorProto.DOUBLE
_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE)


@expresses("Range", opset=13)
def _range(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """start + i * delta, for i from zero up to the quotient of the span and delta, rounded up."""
    body = Writer(node, scope)
    element_type = scope.needed_element_type(node.input[0])
    # Integers count in 64 bits; short floats in float32, as the specification says since opset 27.
    wide = element_type if element_type in _FLOATS else TensorProto.FLOAT if element_type in HALVES else _INT64
    start, limit, delta = (
        body.cast(name, element_type, wide, tail)
        for name, tail in zip(node.input, ("start", "limit", "delta"), strict=True)
    )
    span = body.add("Sub", limit, start, tail="span")
    if wide == _INT64:
        rounding = body.add("Sub", delta, body.add("Sign", delta), tail="rounding")
        count = body.add("Div", body.add("Add", span, rounding, tail="rounded_up"), delta, tail="steps")
    else:
        # The quotient in double, as runtimes take it.
        exact = [body.add("Cast", name, tail=tail, to=_DOUBLE) for name, tail in ((span, "far"), (delta, "step"))]
        count = body.add("Cast", body.add("Ceil", body.add("Div", *exact, tail="quotient")), tail="count", to=_INT64)
    length = body.add("Reshape", count, body.number(1), tail="length")
    none = body.number(0)
    length = body.add("Where", body.add("Less", length, none, tail="is_empty"), none, length, tail="size")
    numbers = ramp(body, length)
    if wide != _INT64:
        numbers = body.add("Cast", numbers, tail="numbers", to=wide)
    spread = body.add("Mul", numbers, delta, tail="spread")
    return body.yields_cast(body.add("Add", spread, start, tail="wide"), wide, element_type)


@expresses("Trilu", opset=13)
def _trilu(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """Elements on one side of the diagonal k are kept, the others become zero."""
    body = Writer(node, scope)
    data, k = node.input[0], body.input(1)
    element_type = scope.needed_element_type(data)
    shape = body.add("Shape", data)
    bounds = {place: body.integers([place], f"axis_m{-place}") for place in (-2, -1)}
    end = body.integers([2**63 - 1], "axis_end")
    rows = ramp(body, body.add("Slice", shape, bounds[-2], bounds[-1], tail="height"))
    columns = ramp(body, body.add("Slice", shape, bounds[-1], end, tail="width"))
    diagonal = body.add("Reshape", rows, body.integers([-1, 1], "column"), tail="rows")
    if k:
        diagonal = body.add("Add", diagonal, k, tail="diagonal")
    # The upper part starts at the diagonal, the lower one ends there.
    upper = bool(value_of(node, "upper", 1))
    operands = (columns, diagonal) if upper else (diagonal, columns)
    drop = body.add("Less", *operands, tail="drop")
    if element_type == TensorProto.BOOL:  # which onnxruntime's Where does not take
        return body.yields("And", body.add("Not", drop, tail="keep"), data)
    zero = "" if element_type == TensorProto.STRING else 0
    return body.yields("Where", drop, body.constant(zero, element_type, "zero"), data)
