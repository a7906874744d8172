"""What came with opsets 8 and 9 to make tensors of computed shapes, and to find places, by Tile and Loop.

Sources: https://onnx.ai/onnx/operators/onnx__ConstantOfShape.html (9),
https://onnx.ai/onnx/operators/onnx__Expand.html (8), https://onnx.ai/onnx/operators/onnx__NonZero.html (9),
https://onnx.ai/onnx/operators/onnx__Compress.html (9), https://onnx.ai/onnx/operators/onnx__OneHot.html (9),
https://onnx.ai/onnx/operators/onnx__IsNaN.html (9), https://onnx.ai/onnx/operators/onnx__Tile.html (6).
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto, helper
from onnx.numpy_helper import to_array

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.ops.axes import from_the_front
from reducelower.adapters.ops.slicing import ramp
from reducelower.errors import RefusedError
from reducelower.model.attributes import value_of
from reducelower.model.build import make_node
from reducelower.scope.scope import Scope

_INT64 = TensorProto.INT64


def _length(body: Writer, name: str) -> int:
    """How many sizes a shape has."""
    shape = body.scope.shape(name)
    if shape is None or shape[0] is None:
        reason = (
            f"how many sizes {name!r} has is not known, and opset {body.scope.target_opset} has no {body.node.op_type}"
        )
        raise RefusedError(reason, "state the shape of that value")
    return shape[0]


@expresses("ConstantOfShape", opset=8)
def _constant_of_shape(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """One number, repeated along each axis."""
    body = Writer(node, scope)
    tensor = value_of(node, "value")
    value = np.zeros(1, np.float32) if tensor is None else to_array(tensor)
    element_type = helper.np_dtype_to_tensor_dtype(value.dtype) if tensor is None else tensor.data_type
    one = body.constant(value.reshape([1] * _length(body, node.input[0])), element_type, "value")
    return body.yields("Tile", one, node.input[0])


@expresses("Expand", opset=7)
def _expand(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """Axes of size 1 are repeated, and those that only the shape has."""
    body = Writer(node, scope)
    data, shape = node.input
    rank, length = scope.needed_rank(data), _length(body, shape)
    if length > rank:
        data = body.add("Unsqueeze", data, tail="aligned", axes=[*range(length - rank)])
    elif rank > length:
        shape = body.add("Concat", body.integers([1] * (rank - length), "ahead"), shape, tail="whole", axis=0)
    if not max(rank, length):
        return body.yields_value(data)
    one = body.number(1)
    is_one = body.add(
        "Cast", body.add("Equal", body.add("Shape", data), one, tail="is_one"), tail="may_grow", to=_INT64
    )
    more = body.add("Mul", is_one, body.add("Sub", shape, one, tail="added"), tail="more")
    return body.yields("Tile", data, body.add("Add", more, one, tail="repeats"))


@expresses("NonZero", opset=7)
def _non_zero(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """The places in one row, each appended in a Loop or not, and counted along the axes."""
    body = Writer(node, scope)
    data = node.input[0]
    rank = scope.needed_rank(data)
    counts = body.add("Cast", data, tail="is_true", to=TensorProto.BOOL)
    counts = body.add("Reshape", body.add("Cast", counts, tail="counts", to=_INT64), body.number(-1), tail="in_a_row")
    size = body.add("Size", data, tail="size")
    places = body.add("Reshape", _places(body, size, counts), body.integers([1, -1], "row"), tail="places")
    if rank == 1:
        return body.yields_last()
    if rank == 0:
        raise RefusedError("it is of a scalar", "opset 9 is the oldest that has it")
    sizes, steps, before = body.add("Shape", data), body.number(1), ""
    rows: list[str] = []
    for axis in reversed(range(rank)):
        # How often the elements behind this axis fit, without how often those of the axis before do.
        quotient = body.add("Div", places, steps, tail=f"quotient_{axis}") if axis < rank - 1 else places
        rows.insert(0, quotient)
        extent = _at_least_one(body, body.add("Gather", sizes, body.number(axis), tail=f"size_{axis}", axis=0))
        if before:
            rows[1] = body.add(
                "Sub", rows[1], body.add("Mul", quotient, before, tail="passed"), tail=f"along_{axis + 1}"
            )
        steps, before = body.add("Mul", steps, extent, tail=f"steps_{axis}"), extent
    return body.yields("Concat", *rows, axis=0)


def _at_least_one(body: Writer, size: str) -> str:
    """A size to divide by: where it is zero there are no places, but kernels object to the zero all the same."""
    is_none = body.add("Cast", body.add("Equal", size, body.number(0), tail="is_none"), tail="one_for_none", to=_INT64)
    return body.add("Add", size, is_none, tail="steps_along")


def _places(body: Writer, size: str, counts: str) -> str:
    """The places in a row, from zero up to its size, that its counts of 0 and 1 tell to take."""
    stem = body.node.name or body.node.output[0]
    names = ("at", "goes_on", "found", "still", "count", "place", "next", "more")
    at, goes_on, found, still, count, place, following, more = (
        body.scope.fresh(stem, f"/{body.node.op_type}/{name}") for name in names
    )
    nodes = [
        make_node("Identity", [goes_on], [still]),
        make_node("Reshape", [at, body.number(1)], [place]),
        make_node("Gather", [counts, place], [count], axis=0),
        make_node("Tile", [place, count], [following]),
        make_node("Concat", [found, following], [more], axis=0),
    ]
    inputs = [
        helper.make_tensor_value_info(name, kind, shape)
        for name, kind, shape in ((at, _INT64, []), (goes_on, TensorProto.BOOL, []), (found, _INT64, [None]))
    ]
    outputs = [
        helper.make_tensor_value_info(still, TensorProto.BOOL, []),
        helper.make_tensor_value_info(more, _INT64, [None]),
    ]
    graph = helper.make_graph(nodes, f"{stem}_places", inputs, outputs)
    return body.add("Loop", size, "", body.integers(np.zeros(0), "none"), tail="taken", body=graph)


@expresses("Compress", opset=9)
def _compress(node: NodeProto, scope: Scope) -> list[NodeProto]:
    body = Writer(node, scope)
    data, axis = node.input[0], value_of(node, "axis")
    if axis is None:
        data = body.add("Reshape", data, body.number(-1), tail="flat")
    kept = body.add("Reshape", body.add("NonZero", node.input[1]), body.number(-1), tail="kept")
    return body.yields("Gather", data, kept, axis=int(axis or 0))


@expresses("OneHot", opset=8, reads=9)
def _one_hot(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """Both values are gathered by whether an index is the number along the new axis."""
    body = Writer(node, scope)
    indices, depth, values = node.input
    rank = scope.needed_rank(indices)
    axis = from_the_front(int(value_of(node, "axis", -1)), rank + 1)
    counted, depth = (body.add("Cast", name, tail="int64", to=_INT64) for name in (indices, depth))
    numbers = ramp(body, body.add("Reshape", depth, body.number(1), tail="depth"))
    along = [-1 if place == axis else 1 for place in range(rank + 1)]
    column = body.add("Reshape", numbers, body.integers(along, "along"), tail="numbers")
    aligned = body.add("Unsqueeze", counted, tail="aligned", axes=[axis])
    # Runtimes count negative indices from the end, which the specification says since opset 11.
    hot = [body.add("Equal", place, column) for place in (aligned, body.add("Add", aligned, depth, tail="from_end"))]
    is_hot = body.add("Or", *hot, tail="is_hot")
    return body.yields("Gather", values, body.add("Cast", is_hot, tail="place", to=_INT64), axis=0)


@expresses("IsNaN", opset=8)
def _is_nan(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """Of no other number it is untrue that it is below one or above zero."""
    body = Writer(node, scope)
    element_type = scope.needed_element_type(node.input[0])
    below = body.add("Less", node.input[0], body.constant(1, element_type, "one"), tail="below_one")
    above = body.add("Greater", node.input[0], body.constant(0, element_type, "zero"), tail="above_zero")
    return body.yields("Not", body.add("Or", below, above, tail="is_number"))
