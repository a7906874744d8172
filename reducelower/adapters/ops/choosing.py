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
from reducelower.scope.scope import Scope

_INT64 = TensorProto.INT64


@expresses("Where", opset=8)
def _where(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """Floats and strings are gathered, for a product with 0 would make NaN of infinity."""
    body = Writer(node, scope)
    condition, one, other = node.input
    element_type = scope.needed_element_type(one)
    if element_type == TensorProto.BOOL:
        otherwise = body.add("And", body.add("Not", condition, tail="is_other"), other, tail="others")
        return body.yields("Or", body.add("And", condition, one, tail="ones"), otherwise)
    if element_type in (*SIGNED, *UNSIGNED):
        # The difference may wrap around, and then the sum wraps back.
        one, other = (body.cast(name, element_type, _INT64, tail) for name, tail in ((one, "one"), (other, "other")))
        chosen = body.add("Mul", _number_of(body, condition), body.add("Sub", one, other, tail="more"), tail="chosen")
        return body.yields_cast(body.add("Add", other, chosen, tail="sum"), _INT64, element_type)
    shapes = [scope.shape(name) for name in node.input]
    sizes = [[size for size in shape or () if size is not None] for shape in shapes]
    if any(shape is None or None in shape for shape in shapes):
        return _of_unknown_sizes(body, element_type)
    shape = np.broadcast_shapes(*map(tuple, sizes))
    ones, others = (
        np.broadcast_to(start + np.arange(prod(own)).reshape(own), shape)
        for start, own in ((0, sizes[1]), (prod(sizes[1]), sizes[2]))
    )
    flat = [body.add("Reshape", name, body.number(-1), tail="flat") for name in (one, other)]
    row = body.add("Concat", *flat, tail="row", axis=0)
    ahead = body.integers(ones - others, "ahead")
    chosen = body.add("Mul", _number_of(body, condition), ahead, tail="chosen")
    return body.yields("Gather", row, body.add("Add", body.integers(others, "others"), chosen), axis=0)


def _of_unknown_sizes(body: Writer, element_type: int) -> list[NodeProto]:
    """The same with both operands repeated to the common shape, and places that are counted when it runs."""
    if element_type == TensorProto.STRING:
        raise RefusedError(
            f"opset {body.scope.target_opset} does not have Where, and the strings are of unknown shapes",
            "opset 9 is the oldest that has it",
        )
    condition, *operands = body.node.input
    is_true = [body.add("Cast", name, tail="shaped", to=TensorProto.BOOL) for name in operands]
    shape = body.add("Shape", body.add("Or", condition, body.add("Or", *is_true), tail="whole"), tail="shape")
    flat = [
        body.add("Reshape", body.add("Expand", name, shape), body.number(-1), tail="flat")
        for name in (*operands, body.add("Not", condition, tail="is_other"))
    ]
    size = body.add("Shape", flat[0], tail="size")
    ahead = body.add("Mul", _number_of(body, flat.pop()), size, tail="ahead")
    row = body.add("Concat", *flat, tail="row", axis=0)
    chosen = body.add("Gather", row, body.add("Add", ramp(body, size), ahead, tail="place"), tail="chosen", axis=0)
    return body.yields_reshaped(chosen, shape, element_type)


def _number_of(body: Writer, condition: str) -> str:
    return body.add("Cast", condition, tail="is_one", to=_INT64)
