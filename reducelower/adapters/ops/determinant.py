"""Det below opset 11: elimination, by the row with the largest leading element first, as libraries do it.

Source: https://onnx.ai/onnx/operators/onnx__Det.html (11).
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.errors import RefusedError
from reducelower.scope.scope import Scope


@expresses("Det", opset=10)
def _determinant(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """The product of the pivots, negative for each that another row had to make place for."""
    matrix = node.input[0]
    shape = scope.shape(matrix)
    size = None if shape is None else shape[-1] or shape[-2]
    if shape is None or not size:
        raise RefusedError(
            "it is an elimination, a step per row, and the size of its matrices is not known",
            "give them a fixed size; opset 11 is the oldest that has Det",
        )
    body = Writer(node, scope)
    element_type = scope.needed_element_type(matrix)
    zero, one = (body.constant(value, element_type, tail) for value, tail in ((0, "zero"), (1, "one")))
    rows, columns = len(shape) - 2, len(shape) - 1

    def cut(name: str, axis: int, left: int, tail: str) -> list[str]:
        """The first row or column, and all others."""
        return body.add_many("Split", [name], [f"first_{tail}", f"other_{tail}"], axis=axis, split=[1, left - 1])

    product = ""
    for left in range(size, 1, -1):
        column, _ = cut(matrix, columns, left, "columns")
        place = body.add("ArgMax", body.add("Abs", column), tail="place", axis=rows, keepdims=1)
        is_pivot = body.add("Equal", place, body.integers(np.arange(left)[:, None], f"rows_{left}"), tail="is_pivot")
        alone = body.add("Where", is_pivot, matrix, zero, tail="alone")
        pivot, beside = cut(
            body.add("ReduceSum", alone, tail="pivot_row", axes=[rows], keepdims=1), columns, left, "of_pivot_row"
        )
        first, _ = cut(matrix, rows, left, "rows")
        _, rest = cut(body.add("Where", is_pivot, first, matrix, tail="swapped"), rows, left, "rows")
        below, matrix = cut(rest, columns, left, "columns")
        # Where the largest is zero, so are all below it.
        has_pivot = body.add("Cast", pivot, tail="has_pivot", to=TensorProto.BOOL)
        share = body.add("Div", below, body.add("Where", has_pivot, pivot, one, tail="divisor"), tail="share")
        matrix = body.add("Sub", matrix, body.add("Mul", share, beside), tail="eliminated")
        stays = body.add("Equal", place, body.integers(0, "first"), tail="stays")
        signed = body.add("Where", stays, pivot, body.add("Neg", pivot), tail="signed")
        product = body.add("Mul", product, signed, tail="product") if product else signed
    whole = body.add("Mul", product, matrix, tail="product") if product else matrix
    return body.yields("Squeeze", whole, axes=[rows, columns])
