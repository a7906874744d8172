"""TopK, ArgMax and ArgMin: what asks for the other end of the order.

Sources: the pages of TopK (10, 11), ArgMax (11, 12).
"""

from __future__ import annotations

from functools import partial

from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.ops.slicing import ramp
from reducelower.adapters.registry import Outcome, lowers
from reducelower.model.attributes import value_of
from reducelower.model.numbers import FLOATS, SIGNED, whole_range
from reducelower.rulebook.guards import from_the_front


def _opposite(op: Writer, data: str, element_type: int) -> tuple[str, list[str]]:
    """What reverses the order of data, and back again: -x, or for integers -1 - x, which cannot overflow."""
    if element_type in FLOATS:
        return "Neg", [data]
    highest = -1 if element_type in SIGNED else whole_range(element_type)[1]
    return "Sub", [op.constant(highest, element_type, "highest"), data]


@lowers("TopK", 11)
def _lower_top_k(op: Writer) -> Outcome:
    """Smallest first is largest first of the opposite; ties go to the lower index both ways."""
    axis = int(op.attribute("axis", -1))
    if axis < -1:
        op.set("axis", from_the_front(axis, op.rank(0)))
    if op.attribute("largest", 1):
        wide = op.scope.target_opset >= 9 and op.scope.element_type(op.input(0)) == TensorProto.INT64
        return _of_int64(op, op.input(0)) if wide else None
    element_type = op.element_type(0)
    reverse, operands = _opposite(op, op.input(0), element_type)
    opposite = op.add(reverse, *operands, tail="opposite")
    if element_type == TensorProto.INT64 and op.scope.target_opset >= 9:
        return _smallest_int64(op, opposite)
    axis = int(op.attribute("axis", -1))
    values, _ = op.add_many("TopK", [opposite, op.input(1)], ["values", "places"], axis=axis)
    if op.wants(1):
        op.nodes[-1].output[1] = op.node.output[1]
    if op.wants(0):
        reverse, operands = _opposite(op, values, element_type)
        op.yields(reverse, *operands)
    return op.nodes


@lowers("TopK", 10)
def _lower_count(op: Writer) -> Outcome:
    """How many is an attribute, and at least one: none of them is an empty slice."""
    count = op.constant_input(1)
    if count is not None and count.reshape(-1)[0] > 0:
        return None
    axis = int(op.attribute("axis", -1))
    if axis < 0:
        axis = from_the_front(axis, op.rank(0))
    shape = op.shape(0)
    if count is None and (shape is None or shape[axis] != 0):
        return _first_of_all(op)
    if op.wants(1):
        empty = op.add("Slice", op.input(0), tail="none", starts=[0], ends=[0], axes=[axis])
        op.yields("Cast", empty, output=1, to=TensorProto.INT64)
    if op.wants(0):
        op.yields("Slice", op.input(0), starts=[0], ends=[0], axes=[axis])
    return op.nodes


def _first_of_all(op: Writer) -> list[NodeProto]:
    """Where how many is computed, all are put in order and the first of them taken."""
    rank = op.rank(0)
    axis = from_the_front(int(op.attribute("axis", -1)), rank)
    size = (op.shape(0) or [None] * rank)[axis]
    if size is None:
        found = _in_order(op, op.input(0), axis, rank)
    else:
        found = op.add_many("TopK", [op.input(0)], ["sorted", "places"], axis=axis, k=size)
    first = ramp(op, op.input(1))
    for output, whole in enumerate(found):
        if op.wants(output):
            op.yields("Gather", whole, first, output=output, axis=axis)
    return op.nodes


def _in_order(op: Writer, data: str, axis: int, rank: int) -> list[str]:
    """All values along an axis of unknown size, largest first, and their places: each goes where it is to be.

    That is, behind as many as are larger, or the same with a lower index: every one is compared with every other.
    """
    one, other = (op.add("Unsqueeze", data, tail="spread", axes=[at]) for at in (axis + 1, axis))
    shape = op.add("Shape", data)
    numbers = ramp(op, op.add("Gather", shape, op.number(axis), tail="length", axis=0))
    trailing = [1] * (rank - 1 - axis)
    columns, rows = (
        op.add("Reshape", numbers, op.integers([*start, *trailing], "along")) for start in ((-1, 1), (1, -1))
    )
    larger, smaller = op.add("Less", one, other, tail="larger"), op.add("Less", other, one, tail="smaller")
    same = op.add("Not", op.add("Or", larger, smaller, tail="differs"), tail="same")
    earlier = op.add("And", same, op.add("Less", rows, columns, tail="earlier"))
    before = op.add("Cast", op.add("Or", larger, earlier, tail="before"), to=TensorProto.INT64)
    place = op.add("ReduceSum", before, tail="place", axes=[axis + 1], keepdims=0)
    upright = op.add("Reshape", numbers, op.integers([-1, *trailing], "upright"))
    everywhere = op.add("Expand", upright, shape, tail="everywhere")
    return [op.add("Scatter", values, place, values, tail="in_order", axis=axis) for values in (data, everywhere)]


def _smallest_int64(op: Writer, opposite: str) -> list[NodeProto]:
    """The largest of the opposite, whose values are turned back."""
    node = op.node
    nodes = _of_int64(op, opposite)
    if op.wants(0):
        made = next(made for made in nodes if made.output[0] == node.output[0])
        made.name = made.output[0] = op.fresh("opposite_values")
        reverse, operands = _opposite(op, made.output[0], TensorProto.INT64)
        op.yields(reverse, *operands)
    return op.nodes


def _of_int64(op: Writer, data: str) -> list[NodeProto]:
    """TopK of numbers that no float holds: put in order by their lower half, and then, ties kept, by the upper one.

    Both halves are exact in double, and of equal ones the lower index comes first. Rows are written out in one, so that
    places in them can be looked up. Results without elements are a slice of the data, whatever is in it: no Reshape
    brings anything to their shape.
    """
    node, scope = op.node, op.scope
    rank = scope.needed_rank(node.input[0])
    axis = from_the_front(int(value_of(node, "axis", -1)), rank)
    known, count = scope.shape(node.input[0]), op.constant_input(1)

    def uppermost() -> tuple[str, ...]:
        return data, op.number(0), node.input[1], op.number(axis)

    if (known is not None and 0 in known) or (count is not None and not count.any()):
        for output in filter(op.wants, (0, 1)):
            op.yields("Slice", *uppermost(), output=output)
        return op.nodes
    has_elements = not scope.may_be_empty(node.input[0]) and (count is not None or not scope.heeds_zero())
    order = [*(place for place in range(rank) if place != axis), axis]
    back = [order.index(place) for place in range(rank)]
    all_in_one = op.integers([-1], "all_in_one")
    turned = data if axis == rank - 1 else op.add("Transpose", data, tail="turned", perm=order)
    shape = op.add("Shape", turned)
    size = None if known is None else known[axis]
    last = op.integers([rank - 1], "last_axis")
    if size is not None:
        length = op.integers([size], f"length_{size}")
    else:
        length = op.add("Gather", shape, last, tail="size", axis=0)
        if not has_elements:
            is_none = op.add("Equal", length, op.number(0), tail="is_none")
            length = op.add("Where", is_none, op.number(1), length, tail="length")  # as good for rows that are none
    rows = op.add("Reshape", turned, op.add("Concat", all_in_one, length, tail="rows", axis=0))
    half = op.integers(1 << 32, "half")
    upper = op.add("Div", rows, half, tail="upper")
    lower = op.add("Sub", rows, op.add("Mul", upper, half, tail="whole"), tail="lower")
    upper, lower = (op.add("Cast", part, tail="half", to=TensorProto.DOUBLE) for part in (upper, lower))
    row_count = op.add("Slice", op.add("Shape", rows), *(op.integers([at], "at") for at in (0, 1)))
    column = op.integers([-1, 1], "column")
    starts = op.add("Mul", op.add("Reshape", ramp(op, row_count), column), length, tail="starts")

    def taken(values: str, places: str, tail: str) -> str:
        flat = op.add("Reshape", values, all_in_one, tail="flat")
        return op.add("Gather", flat, op.add("Add", places, starts, tail="positions"), tail=tail, axis=0)

    _, first = op.add_many("TopK", [lower, length], ["by_lower", "first_places"], axis=1)
    _, second = op.add_many("TopK", [taken(upper, first, "turned_upper"), node.input[1]], ["by", "second"], axis=1)
    places = taken(first, second, "places")
    around = op.add("Slice", shape, op.integers([0], "at"), last, tail="around")
    whole = op.add("Concat", around, node.input[1], tail="whole_shape", axis=0)
    nothing = "" if has_elements else op.add("Slice", *uppermost(), tail="nothing")
    is_empty = nothing and op.is_empty(nothing)

    def unfolded(found: str) -> str:
        name = op.add("Reshape", found, whole)
        return name if axis == rank - 1 else op.add("Transpose", name, tail="turned_back", perm=back)

    for output, found in ((0, taken(rows, places, "values")), (1, places)):
        if not op.wants(output):
            continue
        if has_elements:
            unfolded(found)
        else:
            op.either(is_empty, lambda: nothing, partial(unfolded, found), TensorProto.INT64, "either")
        op.yields_last(output=output)
    return op.nodes
