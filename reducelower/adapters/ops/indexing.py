"""Gathering and scattering where the target has less of it: GatherElements, GatherND, ScatterND, Scatter, reductions.

Where an operator is missing, its indices are turned into places in the data written out as one row. That needs sizes;
they are taken at run time, so that they need not be known.

Sources: https://onnx.ai/onnx/operators/onnx__GatherElements.html (11),
https://onnx.ai/onnx/operators/onnx__GatherND.html (11), https://onnx.ai/onnx/operators/onnx__Scatter.html (9, 11),
https://onnx.ai/onnx/operators/onnx__ScatterElements.html (11, 16, 18),
https://onnx.ai/onnx/operators/onnx__ScatterND.html (11, 16, 18).
"""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, helper

from reducelower.adapters.builder import TO_THE_END, Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.ops.axes import from_the_front
from reducelower.adapters.ops.shaping import without_batches
from reducelower.adapters.ops.slicing import ramp
from reducelower.adapters.registry import Outcome, Rewrite, lowers
from reducelower.model.attributes import value_of
from reducelower.model.build import make_node
from reducelower.scope.scope import Scope

_INT64 = TensorProto.INT64


@expresses("Scatter", opset=11)
def _scatter(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """ScatterElements is its new name."""
    return Writer(node, scope).yields("ScatterElements", *node.input, axis=int(value_of(node, "axis", 0)))


@expresses("ScatterElements", opset=9, reads=11)
def _scatter_elements(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """Scatter is its old name; its axis and indices are counted from the front."""
    body = Writer(node, scope)
    data, indices, updates = node.input
    axis = int(value_of(node, "axis", 0))
    if axis < 0:
        axis = from_the_front(axis, scope.needed_rank(data))
    return body.yields("Scatter", data, _not_negative(body, data, indices, axis), updates, axis=axis)


def _sizes(body: Writer, name: str) -> str:
    return body.add("Shape", name, tail="sizes")


def _scalar(body: Writer, value: int) -> str:
    return body.integers(value, f"scalar_{value}")


def _not_negative(body: Writer, data: str, indices: str, axis: int) -> str:
    """Indices counted from the front; the size of the axis is taken at run time unless there is nothing to count."""
    known = body.scope.constant(indices)
    if known is not None and (known.astype("int64") >= 0).all():
        return indices
    if body.scope.element_type(indices) != _INT64:
        indices = body.add("Cast", indices, tail="int64", to=_INT64)
    # Scalars, so that an index that is one stays one.
    size = body.add("Gather", _sizes(body, data), _scalar(body, axis), tail="size", axis=0)
    below = body.add("Less", indices, _scalar(body, 0), tail="below")
    return body.add("Where", below, body.add("Add", indices, size, tail="shifted"), indices, tail="counted")


@expresses("GatherElements", opset=12)
def _gather_elements(node: NodeProto, scope: Scope) -> list[NodeProto]:
    body = Writer(node, scope)
    row = _places(body)
    return body.yields("Gather", body.add("Reshape", node.input[0], body.number(-1), tail="flat"), row, axis=0)


def _places(body: Writer) -> str:
    """Where in the data, written out in one row, the elements are that GatherElements or ScatterElements name.

    The index counts along the axis, and the place of the index itself along others.
    """
    scope, (data, indices) = body.scope, body.node.input[:2]
    # All that the node reads and yields is of one rank.
    ranks = (scope.rank(name) for name in (data, *body.node.input[1:], body.node.output[0]))
    rank = next((rank for rank in ranks if rank is not None), None)
    if rank is None:
        rank = scope.needed_rank(data)
    axis = from_the_front(int(value_of(body.node, "axis", 0)), rank)
    sizes = _sizes(body, data)
    extents = _sizes(body, indices)
    place = _not_negative(body, data, indices, axis)
    if scope.element_type(indices) != _INT64 and place == indices:
        place = body.add("Cast", indices, tail="int64", to=_INT64)
    row = ""
    for other in range(rank):
        along = place
        if other != axis:
            extent = body.add("Gather", extents, body.number(other), tail=f"extent_{other}", axis=0)
            shape = [1] * rank
            shape[other] = -1
            along = body.add("Reshape", ramp(body, extent), body.integers(shape, "column"), tail="along")
        if not row:
            row = along
            continue
        size = body.add("Gather", sizes, body.number(other), tail=f"size_{other}", axis=0)
        row = body.add("Add", body.add("Mul", row, size, tail="ahead"), along, tail="row")
    return row


@expresses("GatherND", opset=11)
def _gather_nd(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """The leading axes that an index names are written out as one, along which the rest is gathered."""
    if value_of(node, "batch_dims", 0):
        return without_batches(node, scope)
    body = Writer(node, scope)
    data, indices = node.input
    shape = scope.shape(data)
    if _named(body) == 1:
        return body.yields("Gather", data, _rows(body), axis=0)

    def gathered() -> str:
        rest = _rest(body, _sizes(body, data))
        rows = body.add("Reshape", data, body.add("Concat", body.number(-1), rest, tail="rows", axis=0), tail="flat")
        return body.add("Gather", rows, _rows(body), tail="gathered", axis=0)

    if shape is not None and all(shape):
        gathered()
        return body.yields_last()
    element_type = scope.needed_element_type(data)

    def nothing() -> str:
        rest = _rest(body, _sizes(body, data))
        ahead = body.add("Slice", _sizes(body, indices), body.number(0), body.number(-1), tail="ahead")
        zero = body.constant("" if element_type == TensorProto.STRING else 0, element_type, "nothing")
        return body.add("Expand", zero, body.add("Concat", ahead, rest, tail="shape", axis=0), tail="empty")

    # A Reshape takes 0 for a size that the data has.
    return body.yields_either(body.is_empty(data), nothing, gathered, element_type)


_MULTIPLIES_INTEGERS = 9
"""The opset version since which MatMul takes integers."""


def _rows(body: Writer) -> str:
    """What the indices of GatherND or ScatterND name, counted over the axes they name, which are taken as one."""
    data, indices = body.node.input[:2]
    named, sizes = _named(body), _sizes(body, data)
    if named is None:
        count, length = body.scope.needed_rank(data), _number_named(body)
        is_named = body.add("Less", body.integers(np.arange(count), f"axes_{count}"), length, tail="is_named")
        sizes = body.add("Where", is_named, sizes, body.integers(1, "one"), tail="named_sizes")
    else:
        count, length = named, _number_named(body)
        sizes = body.add("Slice", sizes, body.number(0), length, tail="named_sizes")
    later = body.constant(np.arange(count) > np.arange(count)[:, None], TensorProto.BOOL, f"later_{count}")
    later_sizes = body.add("Where", later, sizes, body.integers(1, "one"), tail="later_sizes")
    steps = body.add("ReduceProd", later_sizes, tail="steps", axes=[1], keepdims=1)
    if named is None:
        steps, sizes = (body.add("Slice", name, body.number(0), length, tail="named") for name in (steps, sizes))
    known = body.scope.constant(indices)
    if known is None or (known.astype("int64") < 0).any():
        below = body.add("Less", indices, _scalar(body, 0), tail="below")
        shifted = body.add("Add", indices, sizes, tail="shifted")
        indices = body.add("Where", below, shifted, indices, tail="counted")
    last = body.scope.needed_rank(body.node.input[1]) - 1
    if body.scope.target_opset < _MULTIPLIES_INTEGERS:
        ahead = body.add("Mul", indices, body.add("Reshape", steps, body.number(-1), tail="row_of_steps"), tail="ahead")
        return body.add("ReduceSum", ahead, tail="row", axes=[last], keepdims=0)
    # onnxruntime does not multiply no rows with a vector, but does so with a column.
    return body.add("Gather", body.add("MatMul", indices, steps), _scalar(body, 0), tail="row", axis=last)


def _named(body: Writer) -> int | None:
    """How many axes an index names; None where that is known at run time only."""
    shape = body.scope.shape(body.node.input[1])
    return None if shape is None else shape[-1]


def _number_named(body: Writer) -> str:
    """The same as a tensor of one number."""
    named, indices = _named(body), body.node.input[1]
    if named is not None:
        return body.number(named)
    last = body.number(body.scope.needed_rank(indices) - 1)
    return body.add("Gather", _sizes(body, indices), last, tail="number_named", axis=0)


def _rest(body: Writer, sizes: str) -> str:
    """The sizes of the axes that no index names."""
    return body.add("Slice", sizes, _number_named(body), body.number(TO_THE_END), tail="rest")


@expresses("ScatterND", opset=10, reads=11)
def _scatter_nd(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """Scatter over data, updates and their places written out in one row each; what has no elements stays so."""
    data = node.input[0]
    shape = scope.shape(data)
    body = Writer(node, scope)
    if shape is not None and 0 in shape:
        return body.yields("Identity", data)

    def scattered() -> str:
        places, sizes = _places_of_rows(body)
        rows = [body.add("Reshape", name, body.number(-1), tail="flat") for name in (data, places, node.input[2])]
        return body.add("Reshape", body.add("Scatter", *rows, tail="scattered", axis=0), sizes)

    if shape is None or None in shape:
        return body.yields_either(body.is_empty(data), lambda: data, scattered, scope.needed_element_type(data))
    scattered()
    return body.yields_last()


def _places_of_rows(body: Writer) -> tuple[str, str]:
    """Where in the data, written out in one row, the elements are that ScatterND names; and the data's shape."""
    row, sizes = _rows(body), _sizes(body, body.node.input[0])
    # The places of the elements that an index names lie side by side.
    extents = body.add("Concat", body.number(1), _rest(body, sizes), tail="extents", axis=0)
    count = body.add("ReduceProd", extents, tail="count", axes=[0], keepdims=1)
    first = body.add("Mul", body.add("Reshape", row, body.integers([-1, 1], "column")), count, tail="first")
    return body.add("Add", first, ramp(body, count), tail="places"), sizes


_STEPS = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}


def _lower_reduction(*reductions: str) -> Rewrite:
    """A rewrite for reductions that the older version has not.

    `max` and `min` came with opset 18, but exporters write them for opset 16, where the checker does not read the
    attribute and onnxruntime runs them.
    """

    def lower(node: NodeProto, scope: Scope) -> Outcome:
        reduction = value_of(node, "reduction", "none")
        return _one_by_one(node, scope, _STEPS[reduction]) if reduction in reductions else None

    return lower


for _op_type in ("ScatterElements", "ScatterND"):
    lowers(_op_type, 18)(_lower_reduction("max", "min"))
    lowers(_op_type, 16)(_lower_reduction(*_STEPS))


def _one_by_one(node: NodeProto, scope: Scope, step: str) -> Outcome:
    """A Scan over the updates, each combined with what stands at its place by then; none goes over nothing."""
    body = Writer(node, scope)
    data, _, updates = node.input
    element_type = scope.needed_element_type(data)
    shape = scope.shape(updates)

    def scanned() -> str:
        places = _places(body) if node.op_type == "ScatterElements" else _places_of_rows(body)[0]
        column = body.integers([-1, 1], "column")
        places, given = (body.add("Reshape", name, column, tail="one_by_one") for name in (places, updates))
        flat = body.add("Reshape", data, body.number(-1), tail="flat")
        graph = _step_graph(body, step, element_type)
        found = body.add("Scan", flat, places, given, tail="combined", body=graph, num_scan_inputs=2)
        return body.add("Reshape", found, _sizes(body, data), tail="scattered")

    if shape is not None and 0 in shape:
        return body.yields("Identity", data)
    if shape is None or None in shape:
        return body.yields_either(body.is_empty(updates), lambda: data, scanned, element_type)
    scanned()
    return body.yields_last()


def _step_graph(body: Writer, step: str, element_type: int) -> GraphProto:
    """The data so far, a place and an update in; the data with both combined out."""
    stem = body.node.name or body.node.output[0]
    before, place, update, there, combined, after = (
        body.scope.fresh(stem, f"/{body.node.op_type}/{tail}")
        for tail in ("before", "place", "update", "there", "sum", "after")
    )
    nodes = [
        make_node("Gather", [before, place], [there], axis=0),
        make_node(step, [there, update], [combined]),
        make_node("ScatterElements", [before, place, combined], [after], axis=0),
    ]
    inputs = [
        helper.make_tensor_value_info(name, kind, [size])
        for name, kind, size in ((before, element_type, None), (place, _INT64, 1), (update, element_type, 1))
    ]
    return helper.make_graph(
        nodes, f"{stem}_step", inputs, [helper.make_tensor_value_info(after, element_type, [None])]
    )
