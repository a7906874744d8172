"""TopK, ArgMax and ArgMin: what asks for the other end of the order.

Sources: https://onnx.ai/onnx/operators/onnx__TopK.html (10, 11),
https://onnx.ai/onnx/operators/onnx__ArgMax.html (11, 12).
"""

from __future__ import annotations

from functools import partial

from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.ops.axes import from_the_front
from reducelower.adapters.ops.slicing import ramp
from reducelower.adapters.registry import Outcome, lowers, raises
from reducelower.model.attributes import attribute_of, drop_attribute, set_attribute, value_of
from reducelower.model.numbers import FLOATS, SIGNED, whole_range
from reducelower.scope.scope import Scope


def _opposite(body: Writer, data: str, element_type: int) -> tuple[str, list[str]]:
    """What reverses the order of data, and back again: -x, or for integers -1 - x, which cannot overflow."""
    if element_type in FLOATS:
        return "Neg", [data]
    highest = -1 if element_type in SIGNED else whole_range(element_type)[1]
    return "Sub", [body.constant(highest, element_type, "highest"), data]


@lowers("TopK", 11)
def _lower_top_k(node: NodeProto, scope: Scope) -> Outcome:
    """Smallest first is largest first of the opposite; ties go to the lower index both ways."""
    axis = int(value_of(node, "axis", -1))
    if axis < -1:
        set_attribute(node, "axis", from_the_front(axis, scope.needed_rank(node.input[0])))
    if value_of(node, "largest", 1):
        wide = scope.target_opset >= 9 and scope.element_type(node.input[0]) == TensorProto.INT64
        return _of_int64(Writer(node, scope), node.input[0]) if wide else None
    body = Writer(node, scope)
    element_type = scope.needed_element_type(node.input[0])
    reverse, operands = _opposite(body, node.input[0], element_type)
    opposite = body.add(reverse, *operands, tail="opposite")
    if element_type == TensorProto.INT64 and scope.target_opset >= 9:
        return _smallest_int64(body, opposite)
    axis = int(value_of(node, "axis", -1))
    values, _ = body.add_many("TopK", [opposite, node.input[1]], ["values", "places"], axis=axis)
    if body.wants(1):
        body.nodes[-1].output[1] = node.output[1]
    if body.wants(0):
        reverse, operands = _opposite(body, values, element_type)
        body.yields(reverse, *operands)
    return body.nodes


@lowers("TopK", 10)
def _lower_count(node: NodeProto, scope: Scope) -> Outcome:
    """How many is an attribute, and at least one: none of them is an empty slice."""
    if scope.reference(node.input[1]) is not None:
        return None
    count = scope.constant(node.input[1])
    if count is not None and count.reshape(-1)[0] > 0:
        return None
    axis = int(value_of(node, "axis", -1))
    if axis < 0:
        axis = from_the_front(axis, scope.needed_rank(node.input[0]))
    shape = scope.shape(node.input[0])
    if count is None and (shape is None or shape[axis] != 0):
        return _first_of_all(node, scope)
    body = Writer(node, scope)
    if body.wants(1):
        empty = body.add("Slice", node.input[0], tail="none", starts=[0], ends=[0], axes=[axis])
        body.yields("Cast", empty, output=1, to=TensorProto.INT64)
    if body.wants(0):
        body.yields("Slice", node.input[0], starts=[0], ends=[0], axes=[axis])
    return body.nodes


@raises("TopK", 10)
def _raise_k(node: NodeProto, scope: Scope) -> Outcome:
    """An attribute of the function around comes as a scalar, and the input K is a list of one number."""
    k = attribute_of(node, "k")
    if k is None or not k.ref_attr_name:
        return None
    body = Writer(node, scope)
    scalar = scope.add_reference(k, "value_int", "k")
    listed = body.add("Reshape", scalar, body.integers([1], "one"), tail="K")
    drop_attribute(node, "k")
    node.input.append(listed)
    return [*body.nodes, node]


def _first_of_all(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """Where how many is computed, all are put in order and the first of them taken."""
    rank = scope.needed_rank(node.input[0])
    axis = from_the_front(int(value_of(node, "axis", -1)), rank)
    size = (scope.shape(node.input[0]) or [None] * rank)[axis]
    body = Writer(node, scope)
    if size is None:
        found = _in_order(body, node.input[0], axis, rank)
    else:
        found = body.add_many("TopK", [node.input[0]], ["sorted", "places"], axis=axis, k=size)
    first = ramp(body, node.input[1])
    for output, whole in enumerate(found):
        if body.wants(output):
            body.yields("Gather", whole, first, output=output, axis=axis)
    return body.nodes


def _in_order(body: Writer, data: str, axis: int, rank: int) -> list[str]:
    """All values along an axis of unknown size, largest first, and their places: each goes where it is to be.

    That is, behind as many as are larger, or the same with a lower index: every one is compared with every other.
    """
    one, other = (body.add("Unsqueeze", data, tail="spread", axes=[at]) for at in (axis + 1, axis))
    shape = body.add("Shape", data)
    numbers = ramp(body, body.add("Gather", shape, body.number(axis), tail="length", axis=0))
    trailing = [1] * (rank - 1 - axis)
    columns, rows = (
        body.add("Reshape", numbers, body.integers([*start, *trailing], "along")) for start in ((-1, 1), (1, -1))
    )
    larger, smaller = body.add("Less", one, other, tail="larger"), body.add("Less", other, one, tail="smaller")
    same = body.add("Not", body.add("Or", larger, smaller, tail="differs"), tail="same")
    earlier = body.add("And", same, body.add("Less", rows, columns, tail="earlier"))
    before = body.add("Cast", body.add("Or", larger, earlier, tail="before"), to=TensorProto.INT64)
    place = body.add("ReduceSum", before, tail="place", axes=[axis + 1], keepdims=0)
    upright = body.add("Reshape", numbers, body.integers([-1, *trailing], "upright"))
    everywhere = body.add("Expand", upright, shape, tail="everywhere")
    return [body.add("Scatter", values, place, values, tail="in_order", axis=axis) for values in (data, everywhere)]


def _smallest_int64(body: Writer, opposite: str) -> list[NodeProto]:
    """The largest of the opposite, whose values are turned back."""
    node = body.node
    nodes = _of_int64(body, opposite)
    if body.wants(0):
        made = next(made for made in nodes if made.output[0] == node.output[0])
        made.output[0] = body.scope.fresh(node.name or node.output[0], "/TopK/opposite_values")
        made.name = made.output[0]
        reverse, operands = _opposite(body, made.output[0], TensorProto.INT64)
        body.yields(reverse, *operands)
    return body.nodes


def _of_int64(body: Writer, data: str) -> list[NodeProto]:
    """TopK of numbers that no float holds: put in order by their lower half, and then, ties kept, by the upper one.

    Both halves are exact in double, and of equal ones the lower index comes first. Rows are written out in one, so that
    places in them can be looked up. Results without elements are a slice of the data, whatever is in it: no Reshape
    brings anything to their shape.
    """
    node, scope = body.node, body.scope
    rank = scope.needed_rank(node.input[0])
    axis = from_the_front(int(value_of(node, "axis", -1)), rank)
    known, count = scope.shape(node.input[0]), body.constant_input(1)

    def uppermost() -> tuple[str, ...]:
        return data, body.number(0), node.input[1], body.number(axis)

    if (known is not None and 0 in known) or (count is not None and not count.any()):
        for output in filter(body.wants, (0, 1)):
            body.yields("Slice", *uppermost(), output=output)
        return body.nodes
    has_elements = known is not None and all(known) and count is not None
    order = [*(place for place in range(rank) if place != axis), axis]
    back = [order.index(place) for place in range(rank)]
    all_in_one = body.integers([-1], "all_in_one")
    turned = data if axis == rank - 1 else body.add("Transpose", data, tail="turned", perm=order)
    shape = body.add("Shape", turned)
    size = None if known is None else known[axis]
    last = body.integers([rank - 1], "last_axis")
    if size is not None:
        length = body.integers([size], f"length_{size}")
    else:
        length = body.add("Gather", shape, last, tail="size", axis=0)
        is_none = body.add("Equal", length, body.number(0), tail="is_none")
        length = body.add("Where", is_none, body.number(1), length, tail="length")  # as good for rows that are none
    rows = body.add("Reshape", turned, body.add("Concat", all_in_one, length, tail="rows", axis=0))
    half = body.integers(1 << 32, "half")
    upper = body.add("Div", rows, half, tail="upper")
    lower = body.add("Sub", rows, body.add("Mul", upper, half, tail="whole"), tail="lower")
    upper, lower = (body.add("Cast", part, tail="half", to=TensorProto.DOUBLE) for part in (upper, lower))
    row_count = body.add("Slice", body.add("Shape", rows), *(body.integers([at], "at") for at in (0, 1)))
    column = body.integers([-1, 1], "column")
    starts = body.add("Mul", body.add("Reshape", ramp(body, row_count), column), length, tail="starts")

    def taken(values: str, places: str, tail: str) -> str:
        flat = body.add("Reshape", values, all_in_one, tail="flat")
        return body.add("Gather", flat, body.add("Add", places, starts, tail="positions"), tail=tail, axis=0)

    _, first = body.add_many("TopK", [lower, length], ["by_lower", "first_places"], axis=1)
    _, second = body.add_many("TopK", [taken(upper, first, "turned_upper"), node.input[1]], ["by", "second"], axis=1)
    places = taken(first, second, "places")
    around = body.add("Slice", shape, body.integers([0], "at"), last, tail="around")
    whole = body.add("Concat", around, node.input[1], tail="whole_shape", axis=0)
    nothing = "" if has_elements else body.add("Slice", *uppermost(), tail="nothing")
    is_empty = nothing and body.is_empty(nothing)

    def unfolded(found: str) -> str:
        name = body.add("Reshape", found, whole)
        return name if axis == rank - 1 else body.add("Transpose", name, tail="turned_back", perm=back)

    for output, found in ((0, taken(rows, places, "values")), (1, places)):
        if not body.wants(output):
            continue
        if has_elements:
            unfolded(found)
        else:
            body.either(is_empty, lambda: nothing, partial(unfolded, found), TensorProto.INT64, "either")
        body.yields_last(output=output)
    return body.nodes


def _lower_last_index(node: NodeProto, scope: Scope) -> Outcome:
    """The last of equal ones is the first counted from the back."""
    if not value_of(node, "select_last_index", 0):
        return None
    body = Writer(node, scope)
    data, axis = node.input[0], int(value_of(node, "axis", 0))
    shape = scope.shape(data)
    if axis < 0:
        axis = from_the_front(axis, scope.needed_rank(data))
    bounds = [body.integers([bound], tail) for bound, tail in (
        (-1, "from_the_last"), (-(2**63), "to_the_first"), (axis, f"axis_{axis}"), (-1, "from_the_last")
    )]  # fmt: skip
    backward = body.add("Slice", data, *bounds, tail="backward")
    keepdims = int(value_of(node, "keepdims", 1))
    place = body.add(node.op_type, backward, tail="place", axis=axis, keepdims=keepdims)
    size = None if shape is None else shape[axis]
    if size is not None:
        last = body.integers(size - 1, f"last_{size - 1}")
    else:
        length = body.add("Gather", body.add("Shape", data), body.integers(axis, "axis"), tail="size", axis=0)
        last = body.add("Sub", length, body.integers(1, "one"), tail="last")
    return body.yields("Sub", last, place)


lowers("ArgMax", 12)(_lower_last_index)
lowers("ArgMin", 12)(_lower_last_index)
