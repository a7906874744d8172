"""Det below opset 11: elimination, by the row with the largest leading element first, as libraries do it.

Source: https://onnx.ai/onnx/operators/onnx__Det.html (11).
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.errors import RefusedError


@expresses("Det", opset=10)
def _determinant(op: Writer) -> list[NodeProto]:
    """The product of the pivots, negative for each that another row had to make place for."""
    matrix = op.input(0)
    shape = op.scope.shape(matrix)
    size = None if shape is None else shape[-1] or shape[-2]
    if shape is None or not size:
        raise RefusedError(
            "it is an elimination, a step per row, and the size of its matrices is not known",
            "give them a fixed size; opset 11 is the oldest that has Det",
        )
    element_type = op.scope.needed_element_type(matrix)
    zero, one = (op.constant(value, element_type, tail) for value, tail in ((0, "zero"), (1, "one")))
    rows, columns = len(shape) - 2, len(shape) - 1

    def cut(name: str, axis: int, left: int, tail: str) -> list[str]:
        """The first row or column, and all others."""
        return op.add_many("Split", [name], [f"first_{tail}", f"other_{tail}"], axis=axis, split=[1, left - 1])

    product = ""
    for left in range(size, 1, -1):
        column, _ = cut(matrix, columns, left, "columns")
        place = op.add("ArgMax", op.add("Abs", column), tail="place", axis=rows, keepdims=1)
        is_pivot = op.add("Equal", place, op.integers(np.arange(left)[:, None], f"rows_{left}"), tail="is_pivot")
        alone = op.add("Where", is_pivot, matrix, zero, tail="alone")
        pivot, beside = cut(
            op.add("ReduceSum", alone, tail="pivot_row", axes=[rows], keepdims=1), columns, left, "of_pivot_row"
        )
        first, _ = cut(matrix, rows, left, "rows")
        _, rest = cut(op.add("Where", is_pivot, first, matrix, tail="swapped"), rows, left, "rows")
        below, matrix = cut(rest, columns, left, "columns")
        # Where the largest is zero, so are all below it.
        has_pivot = op.add("Cast", pivot, tail="has_pivot", to=TensorProto.BOOL)
        share = op.add("Div", below, op.add("Where", has_pivot, pivot, one, tail="divisor"), tail="share")
        matrix = op.add("Sub", matrix, op.add("Mul", share, beside), tail="eliminated")
        stays = op.add("Equal", place, op.integers(0, "first"), tail="stays")
        signed = op.add("Where", stays, pivot, op.add("Neg", pivot), tail="signed")
        product = op.add("Mul", product, signed, tail="product") if product else signed
    whole = op.add("Mul", product, matrix, tail="product") if product else matrix
    return op.yields("Squeeze", whole, axes=[rows, columns])
