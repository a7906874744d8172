"""Unique where the target has none: every element, or every slice along an axis, is compared with every other.

What NaN does the page leaves open. Source: https://onnx.ai/onnx/operators/onnx__Unique.html (11).
"""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.ops.axes import from_the_front
from reducelower.adapters.ops.slicing import ramp
from reducelower.errors import RefusedError
from reducelower.model.attributes import value_of
from reducelower.scope.scope import Scope

_INT64 = TensorProto.INT64


@expresses("Unique", opset=13)
def _unique(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """The first of equals are kept; the place of one is how many of these come before it, in value or in the input."""
    body = Writer(node, scope)
    element_type = scope.needed_element_type(node.input[0])
    if element_type == TensorProto.STRING:
        raise RefusedError("nothing older puts strings in order", "opset 11 is the oldest that has Unique")
    data, along = node.input[0], value_of(node, "axis")
    row, column = (body.integers(shape, tail) for shape, tail in (([1, -1], "row"), ([-1, 1], "column")))
    axis = 0
    if along is None:
        compared = data = body.add("Reshape", data, body.number(-1), tail="flat")
    else:
        rank = scope.needed_rank(data)
        axis = from_the_front(int(along), rank)
        order = [axis, *(place for place in range(rank) if place != axis)]
        turned = data if axis == 0 else body.add("Transpose", data, tail="turned", perm=order)
        compared = body.add("Reshape", turned, body.integers([0, -1], "slices_shape"), tail="slices")
    if element_type == TensorProto.BOOL:
        compared = body.add("Cast", compared, tail="numbers", to=TensorProto.INT32)
    less, same = _of_elements(body, compared, row, column) if along is None else _of_slices(body, compared)
    shape = body.add("Shape", data)
    numbers = ramp(body, body.add("Gather", shape, body.number(axis), tail="length", axis=0))
    earlier = body.add("Less", body.add("Reshape", numbers, row), body.add("Reshape", numbers, column), tail="earlier")
    is_first = body.add("Equal", _count(body, body.add("And", same, earlier)), body.integers(0, "none"))
    first = body.add("Reshape", is_first, row, tail="firsts")
    if value_of(node, "sorted", 1):
        place = _count(body, body.add("And", less, first, tail="comes_before"))
    else:
        # That of a repeated one is that of its first.
        place = body.add("Reshape", _count(body, body.add("And", earlier, first, tail="comes_before")), row)
        own = body.add("Cast", body.add("And", same, first, tail="is_its_first"), to=_INT64)
        place = _sum(body, body.add("Mul", own, place))
    kept = body.add("Reshape", body.add("NonZero", is_first), body.number(-1), tail="kept")
    indices = body.add("ScatterElements", kept, body.add("Gather", place, kept), kept, tail="indices", axis=0)
    if body.wants(0):
        body.yields("Gather", data, indices, axis=axis)
    if body.wants(1):
        body.yields("Identity", indices, output=1)
    if body.wants(2):
        body.yields("Identity", place, output=2)
    if body.wants(3):
        body.yields("Gather", _count(body, same), indices, output=3, axis=0)
    return body.nodes


def _sum(body: Writer, values: str) -> str:
    return body.add("ReduceSum", values, body.number(1), tail="sum", keepdims=0)


def _count(body: Writer, truths: str) -> str:
    """How many are true in each row."""
    return _sum(body, body.add("Cast", truths, to=_INT64))


def _of_elements(body: Writer, data: str, *shapes: str) -> tuple[str, str]:
    """For element i, a row, and element j, a column: whether j is less, and whether they are the same."""
    row, column = (body.add("Reshape", data, shape) for shape in shapes)
    return body.add("Less", row, column, tail="less"), body.add("Equal", row, column, tail="same")


def _of_slices(body: Writer, slices: str) -> tuple[str, str]:
    """The same for rows of a matrix, of which the first elements that differ decide."""
    column, row = (body.add("Unsqueeze", slices, body.number(axis), tail="spread") for axis in (1, 0))
    found = []
    for operands in ((row, column), (column, row)):
        differs = body.add("Cast", body.add("Less", *operands), tail="differs", to=TensorProto.INT32)
        anywhere = body.add("ReduceMax", differs, tail="anywhere", axes=[2], keepdims=0)
        found.append((
            body.add("Cast", anywhere, tail="differs_somewhere", to=TensorProto.BOOL),
            body.add("ArgMax", differs, tail="first_place", axis=2, keepdims=0),
        ))  # fmt: skip
    (below, below_at), (above, above_at) = found
    is_earlier = body.add("Less", below_at, above_at, tail="is_earlier")
    decides = body.add("Or", body.add("Not", above, tail="never_above"), is_earlier, tail="decides")
    return (
        body.add("And", below, decides, tail="less"),
        body.add("Not", body.add("Or", below, above, tail="is_different"), tail="same"),
    )
