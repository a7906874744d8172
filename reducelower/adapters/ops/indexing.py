"""Gathering and scattering where the target has less of it: GatherElements, GatherND, ScatterND, Scatter, reductions.

Where an operator is missing, its indices are turned into places in the data written out as one row. That needs sizes;
they are taken at run time, so that they need not be known.

Sources: the pages of GatherElements (11), GatherND (11), Scatter (9, 11), ScatterElements (11, 16, 18), ScatterND (11,
16, 18).
"""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto

from reducelower.adapters.builder import TO_THE_END, Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.ops.axes import from_the_front
from reducelower.adapters.ops.shaping import without_batches
from reducelower.adapters.ops.slicing import ramp
from reducelower.adapters.registry import Outcome, Rewrite, lowers
from reducelower.model.attributes import make_node

_INT64 = TensorProto.INT64


@expresses("ScatterElements", opset=9, reads=11)
def _scatter_elements(op: Writer) -> list[NodeProto]:
    """Scatter is its old name; its axis and indices are counted from the front."""
    data, indices, updates = op.node.input
    axis = int(op.attribute("axis", 0))
    if axis < 0:
        axis = from_the_front(axis, op.scope.needed_rank(data))
    return op.yields("Scatter", data, _not_negative(op, data, indices, axis), updates, axis=axis)


def _sizes(op: Writer, name: str) -> str:
    return op.add("Shape", name, tail="sizes")


def _scalar(op: Writer, value: int) -> str:
    return op.integers(value, f"scalar_{value}")


def _not_negative(op: Writer, data: str, indices: str, axis: int) -> str:
    """Indices counted from the front; the size of the axis is taken at run time unless there is nothing to count."""
    known = op.scope.constant(indices)
    if known is not None and (known.astype("int64") >= 0).all():
        return indices
    if op.scope.element_type(indices) != _INT64:
        indices = op.add("Cast", indices, tail="int64", to=_INT64)
    # Scalars, so that an index that is one stays one.
    size = op.add("Gather", _sizes(op, data), _scalar(op, axis), tail="size", axis=0)
    below = op.add("Less", indices, _scalar(op, 0), tail="below")
    return op.add("Where", below, op.add("Add", indices, size, tail="shifted"), indices, tail="counted")


@expresses("GatherElements", opset=12)
def _gather_elements(op: Writer) -> list[NodeProto]:
    row = _places(op)
    return op.yields("Gather", op.add("Reshape", op.input(0), op.number(-1), tail="flat"), row, axis=0)


def _places(op: Writer) -> str:
    """Where in the data, written out in one row, the elements are that GatherElements or ScatterElements name.

    The index counts along the axis, and the place of the index itself along others.
    """
    scope, (data, indices) = op.scope, op.node.input[:2]
    # All that the node reads and yields is of one rank.
    ranks = (scope.rank(name) for name in (data, *op.node.input[1:], op.node.output[0]))
    rank = next((rank for rank in ranks if rank is not None), None)
    if rank is None:
        rank = scope.needed_rank(data)
    axis = from_the_front(int(op.attribute("axis", 0)), rank)
    sizes = _sizes(op, data)
    extents = _sizes(op, indices)
    place = _not_negative(op, data, indices, axis)
    if scope.element_type(indices) != _INT64 and place == indices:
        place = op.add("Cast", indices, tail="int64", to=_INT64)
    row = ""
    for other in range(rank):
        along = place
        if other != axis:
            extent = op.add("Gather", extents, op.number(other), tail=f"extent_{other}", axis=0)
            shape = [1] * rank
            shape[other] = -1
            along = op.add("Reshape", ramp(op, extent), op.integers(shape, "column"), tail="along")
        if not row:
            row = along
            continue
        size = op.add("Gather", sizes, op.number(other), tail=f"size_{other}", axis=0)
        row = op.add("Add", op.add("Mul", row, size, tail="ahead"), along, tail="row")
    return row


@expresses("GatherND", opset=11)
def _gather_nd(op: Writer) -> list[NodeProto]:
    """The leading axes that an index names are written out as one, along which the rest is gathered."""
    if op.attribute("batch_dims", 0):
        return without_batches(op)
    data, indices = op.node.input
    if _named(op) == 1:
        return op.yields("Gather", data, _rows(op), axis=0)
    named, known = _named(op), op.scope.known(data).shape
    rest = None if named is None or known is None else known[named:]

    def gathered() -> str:
        if rest is not None and all(size.number is not None for size in rest):
            shape = op.integers([-1, *(size.number for size in rest)], "rows")
        else:
            shape = op.add("Concat", op.number(-1), _rest(op, _sizes(op, data)), tail="rows", axis=0)
        return op.add("Gather", op.add("Reshape", data, shape, tail="flat"), _rows(op), tail="gathered", axis=0)

    def nothing() -> str:
        ahead = op.add("Slice", _sizes(op, indices), op.number(0), op.number(-1), tail="ahead")
        element_type = op.scope.needed_element_type(data)
        zero = op.constant("" if element_type == TensorProto.STRING else 0, element_type, "nothing")
        shape = op.add("Concat", ahead, _rest(op, _sizes(op, data)), tail="shape", axis=0)
        return op.add("Expand", zero, shape, tail="empty")

    if rest is not None and all(size.is_positive() for size in rest):
        gathered()
        return op.yields_last()
    # A Reshape takes 0 for a size that the data has.
    return op.unless_empty(data, nothing, gathered)


_MULTIPLIES_INTEGERS = 9
"""The opset version since which MatMul takes integers."""


def _rows(op: Writer) -> str:
    """What the indices of GatherND or ScatterND name, counted over the axes they name, which are taken as one."""
    data, indices = op.node.input[:2]
    named, sizes = _named(op), _sizes(op, data)
    if named is None:
        count, length = op.scope.needed_rank(data), _number_named(op)
        is_named = op.add("Less", op.integers(np.arange(count), f"axes_{count}"), length, tail="is_named")
        sizes = op.add("Where", is_named, sizes, op.integers(1, "one"), tail="named_sizes")
    else:
        count, length = named, _number_named(op)
        sizes = op.add("Slice", sizes, op.number(0), length, tail="named_sizes")
    later = op.constant(np.arange(count) > np.arange(count)[:, None], TensorProto.BOOL, f"later_{count}")
    later_sizes = op.add("Where", later, sizes, op.integers(1, "one"), tail="later_sizes")
    steps = op.add("ReduceProd", later_sizes, tail="steps", axes=[1], keepdims=1)
    if named is None:
        steps, sizes = (op.add("Slice", name, op.number(0), length, tail="named") for name in (steps, sizes))
    known = op.scope.constant(indices)
    if known is None or (known.astype("int64") < 0).any():
        below = op.add("Less", indices, _scalar(op, 0), tail="below")
        shifted = op.add("Add", indices, sizes, tail="shifted")
        indices = op.add("Where", below, shifted, indices, tail="counted")
    last = op.rank(1) - 1
    if op.scope.target_opset < _MULTIPLIES_INTEGERS:
        ahead = op.add("Mul", indices, op.add("Reshape", steps, op.number(-1), tail="row_of_steps"), tail="ahead")
        return op.add("ReduceSum", ahead, tail="row", axes=[last], keepdims=0)
    # onnxruntime does not multiply no rows with a vector, but does so with a column.
    return op.add("Gather", op.add("MatMul", indices, steps), _scalar(op, 0), tail="row", axis=last)


def _named(op: Writer) -> int | None:
    """How many axes an index names; None where that is known at run time only."""
    shape = op.shape(1)
    return None if shape is None else shape[-1]


def _number_named(op: Writer) -> str:
    """The same as a tensor of one number."""
    named, indices = _named(op), op.input(1)
    if named is not None:
        return op.number(named)
    last = op.number(op.scope.needed_rank(indices) - 1)
    return op.add("Gather", _sizes(op, indices), last, tail="number_named", axis=0)


def _rest(op: Writer, sizes: str) -> str:
    """The sizes of the axes that no index names."""
    return op.add("Slice", sizes, _number_named(op), op.number(TO_THE_END), tail="rest")


@expresses("ScatterND", opset=10, reads=11)
def _scatter_nd(op: Writer) -> list[NodeProto]:
    """Scatter over data, updates and their places written out in one row each; what has no elements stays so."""
    data = op.input(0)
    shape = op.scope.shape(data)
    if shape is not None and 0 in shape:
        return op.yields("Identity", data)

    def scattered() -> str:
        places, sizes = _places_of_rows(op)
        rows = [op.add("Reshape", name, op.number(-1), tail="flat") for name in (data, places, op.input(2))]
        return op.add("Reshape", op.add("Scatter", *rows, tail="scattered", axis=0), sizes)

    return op.unless_empty(data, lambda: data, scattered)


def _places_of_rows(op: Writer) -> tuple[str, str]:
    """Where in the data, written out in one row, the elements are that ScatterND names; and the data's shape."""
    row, sizes = _rows(op), _sizes(op, op.input(0))
    # The places of the elements that an index names lie side by side.
    extents = op.add("Concat", op.number(1), _rest(op, sizes), tail="extents", axis=0)
    count = op.add("ReduceProd", extents, tail="count", axes=[0], keepdims=1)
    first = op.add("Mul", op.add("Reshape", row, op.integers([-1, 1], "column")), count, tail="first")
    return op.add("Add", first, ramp(op, count), tail="places"), sizes


_STEPS = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}


def _lower_reduction(*reductions: str) -> Rewrite:
    """A rewrite for reductions that the older version lacks.

    `max` and `min` came with opset 18, but exporters write them for opset 16, where the checker does not read the
    attribute and onnxruntime runs them.
    """

    def lower(op: Writer) -> Outcome:
        reduction = op.attribute("reduction", "none")
        return _one_by_one(op, _STEPS[reduction]) if reduction in reductions else None

    return lower


for _op_type in ("ScatterElements", "ScatterND"):
    lowers(_op_type, 18)(_lower_reduction("max", "min"))
    lowers(_op_type, 16)(_lower_reduction(*_STEPS))


def _one_by_one(op: Writer, step: str) -> Outcome:
    """A Scan over the updates, each combined with what stands at its place by then; none goes over nothing."""
    data, _, updates = op.node.input
    element_type = op.scope.needed_element_type(data)
    shape = op.scope.shape(updates)

    def scanned() -> str:
        places = _places(op) if op.node.op_type == "ScatterElements" else _places_of_rows(op)[0]
        column = op.integers([-1, 1], "column")
        places, given = (op.add("Reshape", name, column, tail="one_by_one") for name in (places, updates))
        flat = op.add("Reshape", data, op.number(-1), tail="flat")
        graph = _step_graph(op, step, element_type)
        found = op.add("Scan", flat, places, given, tail="combined", body=graph, num_scan_inputs=2)
        return op.add("Reshape", found, _sizes(op, data), tail="scattered")

    if shape is not None and 0 in shape:
        return op.yields("Identity", data)
    return op.unless_empty(updates, lambda: data, scanned)


def _step_graph(op: Writer, step: str, element_type: int) -> GraphProto:
    """The data so far, a place and an update in; the data with both combined out."""
    tails = ("before", "place", "update", "there", "sum", "after")
    before, place, update, there, combined, after = map(op.fresh, tails)
    nodes = [
        make_node("Gather", [before, place], [there], axis=0),
        make_node(step, [there, update], [combined]),
        make_node("ScatterElements", [before, place, combined], [after], axis=0),
    ]
    inputs = [(before, element_type, (None,)), (place, _INT64, (1,)), (update, element_type, (1,))]
    return op.graph("step", nodes, inputs, [(after, element_type, (None,))])
