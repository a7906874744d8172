"""Unique where the target has none: every element, or every slice along an axis, is compared with every other.

What NaN does the page leaves open. Source: the page of Unique (11).
"""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.ops.axes import from_the_front
from reducelower.adapters.ops.slicing import ramp
from reducelower.errors import RefusedError

_INT64 = TensorProto.INT64


@expresses("Unique", opset=13)
def _unique(op: Writer) -> list[NodeProto]:
    """The first of equals are kept; the place of one is how many of these come before it, in value or in the input."""
    element_type = op.element_type(0)
    if element_type == TensorProto.STRING:
        raise RefusedError("nothing older puts strings in order", "opset 11 is the oldest that has Unique")
    data, along = op.input(0), op.attribute("axis")
    row, column = (op.integers(shape, tail) for shape, tail in (([1, -1], "row"), ([-1, 1], "column")))
    axis = 0
    if along is None:
        compared = data = op.add("Reshape", data, op.number(-1), tail="flat")
    else:
        rank = op.scope.needed_rank(data)
        axis = from_the_front(int(along), rank)
        order = [axis, *(place for place in range(rank) if place != axis)]
        turned = data if axis == 0 else op.add("Transpose", data, tail="turned", perm=order)
        compared = op.add("Reshape", turned, op.integers([0, -1], "slices_shape"), tail="slices")
    if element_type == TensorProto.BOOL:
        compared = op.add("Cast", compared, tail="numbers", to=TensorProto.INT32)
    less, same = _of_elements(op, compared, row, column) if along is None else _of_slices(op, compared)
    shape = op.add("Shape", data)
    numbers = ramp(op, op.add("Gather", shape, op.number(axis), tail="length", axis=0))
    earlier = op.add("Less", op.add("Reshape", numbers, row), op.add("Reshape", numbers, column), tail="earlier")
    is_first = op.add("Equal", _count(op, op.add("And", same, earlier)), op.integers(0, "none"))
    first = op.add("Reshape", is_first, row, tail="firsts")
    if op.attribute("sorted", 1):
        place = _count(op, op.add("And", less, first, tail="comes_before"))
    else:
        # That of a repeated one is that of its first.
        place = op.add("Reshape", _count(op, op.add("And", earlier, first, tail="comes_before")), row)
        own = op.add("Cast", op.add("And", same, first, tail="is_its_first"), to=_INT64)
        place = _sum(op, op.add("Mul", own, place))
    kept = op.add("Reshape", op.add("NonZero", is_first), op.number(-1), tail="kept")
    indices = op.add("ScatterElements", kept, op.add("Gather", place, kept), kept, tail="indices", axis=0)
    if op.wants(0):
        op.yields("Gather", data, indices, axis=axis)
    if op.wants(1):
        op.yields("Identity", indices, output=1)
    if op.wants(2):
        op.yields("Identity", place, output=2)
    if op.wants(3):
        op.yields("Gather", _count(op, same), indices, output=3, axis=0)
    return op.nodes


def _sum(op: Writer, values: str) -> str:
    return op.add("ReduceSum", values, op.number(1), tail="sum", keepdims=0)


def _count(op: Writer, truths: str) -> str:
    """How many are true in each row."""
    return _sum(op, op.add("Cast", truths, to=_INT64))


def _of_elements(op: Writer, data: str, *shapes: str) -> tuple[str, str]:
    """For element i, a row, and element j, a column: whether j is less, and whether they are the same."""
    row, column = (op.add("Reshape", data, shape) for shape in shapes)
    return op.add("Less", row, column, tail="less"), op.add("Equal", row, column, tail="same")


def _of_slices(op: Writer, slices: str) -> tuple[str, str]:
    """The same for rows of a matrix, of which the first elements that differ decide."""
    column, row = (op.add("Unsqueeze", slices, op.number(axis), tail="spread") for axis in (1, 0))
    found = []
    for operands in ((row, column), (column, row)):
        differs = op.add("Cast", op.add("Less", *operands), tail="differs", to=TensorProto.INT32)
        anywhere = op.add("ReduceMax", differs, tail="anywhere", axes=[2], keepdims=0)
        found.append((
            op.add("Cast", anywhere, tail="differs_somewhere", to=TensorProto.BOOL),
            op.add("ArgMax", differs, tail="first_place", axis=2, keepdims=0),
        ))  # fmt: skip
    (below, below_at), (above, above_at) = found
    is_earlier = op.add("Less", below_at, above_at, tail="is_earlier")
    decides = op.add("Or", op.add("Not", above, tail="never_above"), is_earlier, tail="decides")
    return (
        op.add("And", below, decides, tail="less"),
        op.add("Not", op.add("Or", below, above, tail="is_different"), tail="same"),
    )
