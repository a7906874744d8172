"""Range and Trilu where the target has none: they count.

Sources: https://onnx.ai/onnx/operators/onnx__Range.html (11, 27), https://onnx.ai/onnx/operators/onnx__Trilu.html (14).
"""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.ops.slicing import ramp
from reducelower.model.numbers import HALVES

_INT64, _DOUBLE = TensorProto.INT64, TensorProto.DOUBLE
_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE)


@expresses("Range", opset=13)
def _range(op: Writer) -> list[NodeProto]:
    """start + i * delta, for i from zero up to the quotient of the span and delta, rounded up."""
    element_type = op.element_type(0)
    # Integers count in 64 bits; short floats in float32, as the specification says since opset 27.
    wide = element_type if element_type in _FLOATS else TensorProto.FLOAT if element_type in HALVES else _INT64
    start, limit, delta = (
        op.cast(name, element_type, wide, tail)
        for name, tail in zip(op.node.input, ("start", "limit", "delta"), strict=True)
    )
    span = op.add("Sub", limit, start, tail="span")
    if wide == _INT64:
        rounding = op.add("Sub", delta, op.add("Sign", delta), tail="rounding")
        count = op.add("Div", op.add("Add", span, rounding, tail="rounded_up"), delta, tail="steps")
    else:
        # The quotient in double, as runtimes take it.
        exact = [op.add("Cast", name, tail=tail, to=_DOUBLE) for name, tail in ((span, "far"), (delta, "step"))]
        count = op.add("Cast", op.add("Ceil", op.add("Div", *exact, tail="quotient")), tail="count", to=_INT64)
    length = op.add("Reshape", count, op.number(1), tail="length")
    none = op.number(0)
    length = op.add("Where", op.add("Less", length, none, tail="is_empty"), none, length, tail="size")
    numbers = ramp(op, length)
    if wide != _INT64:
        numbers = op.add("Cast", numbers, tail="numbers", to=wide)
    spread = op.add("Mul", numbers, delta, tail="spread")
    return op.yields_cast(op.add("Add", spread, start, tail="wide"), wide, element_type)


@expresses("Trilu", opset=13)
def _trilu(op: Writer) -> list[NodeProto]:
    """Elements on one side of the diagonal k are kept, the others become zero."""
    data, k = op.input(0), op.input(1)
    element_type = op.scope.needed_element_type(data)
    shape = op.add("Shape", data)
    bounds = {place: op.integers([place], f"axis_m{-place}") for place in (-2, -1)}
    end = op.integers([2**63 - 1], "axis_end")
    rows = ramp(op, op.add("Slice", shape, bounds[-2], bounds[-1], tail="height"))
    columns = ramp(op, op.add("Slice", shape, bounds[-1], end, tail="width"))
    diagonal = op.add("Reshape", rows, op.integers([-1, 1], "column"), tail="rows")
    if k:
        diagonal = op.add("Add", diagonal, k, tail="diagonal")
    # The upper part starts at the diagonal, the lower one ends there.
    upper = bool(op.attribute("upper", 1))
    operands = (columns, diagonal) if upper else (diagonal, columns)
    drop = op.add("Less", *operands, tail="drop")
    if element_type == TensorProto.BOOL:  # which onnxruntime's Where does not take
        return op.yields("And", op.add("Not", drop, tail="keep"), data)
    zero = "" if element_type == TensorProto.STRING else 0
    return op.yields("Where", drop, op.constant(zero, element_type, "zero"), data)
