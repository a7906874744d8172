"""Where below opset 9, by arithmetic that is exact for whole numbers, or by places in both operands written as one row.

Source: https://onnx.ai/onnx/operators/onnx__Where.html (9).
"""

from __future__ import annotations

from math import prod

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.ops.slicing import ramp
from reducelower.errors import RefusedError
from reducelower.model.numbers import SIGNED, UNSIGNED

_INT64 = TensorProto.INT64


@expresses("Where", opset=8)
def _where(op: Writer) -> list[NodeProto]:
    """Floats and strings are gathered, for a product with 0 would make NaN of infinity."""
    condition, one, other = op.node.input
    element_type = op.scope.needed_element_type(one)
    if element_type == TensorProto.BOOL:
        otherwise = op.add("And", op.add("Not", condition, tail="is_other"), other, tail="others")
        return op.yields("Or", op.add("And", condition, one, tail="ones"), otherwise)
    if element_type in (*SIGNED, *UNSIGNED):
        # The difference may wrap around, and then the sum wraps back.
        one, other = (op.cast(name, element_type, _INT64, tail) for name, tail in ((one, "one"), (other, "other")))
        chosen = op.add("Mul", _number_of(op, condition), op.add("Sub", one, other, tail="more"), tail="chosen")
        return op.yields_cast(op.add("Add", other, chosen, tail="sum"), _INT64, element_type)
    shapes = [op.scope.shape(name) for name in op.node.input]
    sizes = [[size for size in shape or () if size is not None] for shape in shapes]
    if any(shape is None or None in shape for shape in shapes):
        return _of_unknown_sizes(op, element_type)
    shape = np.broadcast_shapes(*map(tuple, sizes))
    ones, others = (
        np.broadcast_to(start + np.arange(prod(own)).reshape(own), shape)
        for start, own in ((0, sizes[1]), (prod(sizes[1]), sizes[2]))
    )
    flat = [op.add("Reshape", name, op.number(-1), tail="flat") for name in (one, other)]
    row = op.add("Concat", *flat, tail="row", axis=0)
    ahead = op.integers(ones - others, "ahead")
    chosen = op.add("Mul", _number_of(op, condition), ahead, tail="chosen")
    return op.yields("Gather", row, op.add("Add", op.integers(others, "others"), chosen), axis=0)


def _of_unknown_sizes(op: Writer, element_type: int) -> list[NodeProto]:
    """The same with both operands repeated to the common shape, and places that are counted when it runs."""
    if element_type == TensorProto.STRING:
        raise RefusedError(
            f"opset {op.scope.target_opset} does not have Where, and the strings are of unknown shapes",
            "opset 9 is the oldest that has it",
        )
    condition, *operands = op.node.input
    is_true = [op.add("Cast", name, tail="shaped", to=TensorProto.BOOL) for name in operands]
    shape = op.add("Shape", op.add("Or", condition, op.add("Or", *is_true), tail="whole"), tail="shape")
    flat = [
        op.add("Reshape", op.add("Expand", name, shape), op.number(-1), tail="flat")
        for name in (*operands, op.add("Not", condition, tail="is_other"))
    ]
    size = op.add("Shape", flat[0], tail="size")
    ahead = op.add("Mul", _number_of(op, flat.pop()), size, tail="ahead")
    row = op.add("Concat", *flat, tail="row", axis=0)
    chosen = op.add("Gather", row, op.add("Add", ramp(op, size), ahead, tail="place"), tail="chosen", axis=0)
    return op.yields_reshaped(chosen, shape, element_type)


def _number_of(op: Writer, condition: str) -> str:
    return op.add("Cast", condition, tail="is_one", to=_INT64)
