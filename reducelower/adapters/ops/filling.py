"""NonZero and Where, which came with opset 9, by Loop and arithmetic.

Where is arithmetic that is exact for whole numbers, or places in both operands written as one row.

Sources: the pages of NonZero (9), Where (9).
"""

from __future__ import annotations

from math import prod

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.ops.slicing import ramp
from reducelower.errors import RefusedError
from reducelower.model.attributes import make_node
from reducelower.model.numbers import SIGNED, UNSIGNED

_INT64 = TensorProto.INT64


@expresses("NonZero", opset=7)
def _non_zero(op: Writer) -> list[NodeProto]:
    """The places in one row, each appended in a Loop or not, and counted along the axes."""
    data = op.input(0)
    rank = op.scope.needed_rank(data)
    counts = op.add("Cast", data, tail="is_true", to=TensorProto.BOOL)
    counts = op.add("Reshape", op.add("Cast", counts, tail="counts", to=_INT64), op.number(-1), tail="in_a_row")
    size = op.add("Size", data, tail="size")
    places = op.add("Reshape", _places(op, size, counts), op.integers([1, -1], "row"), tail="places")
    if rank == 1:
        return op.yields_last()
    if rank == 0:
        raise RefusedError("it is of a scalar", "opset 9 is the oldest that has it")
    sizes, steps, before = op.add("Shape", data), op.number(1), ""
    rows: list[str] = []
    for axis in reversed(range(rank)):
        # How often the elements behind this axis fit, without how often those of the axis before do.
        quotient = op.add("Div", places, steps, tail=f"quotient_{axis}") if axis < rank - 1 else places
        rows.insert(0, quotient)
        extent = _at_least_one(op, op.add("Gather", sizes, op.number(axis), tail=f"size_{axis}", axis=0))
        if before:
            rows[1] = op.add("Sub", rows[1], op.add("Mul", quotient, before, tail="passed"), tail=f"along_{axis + 1}")
        steps, before = op.add("Mul", steps, extent, tail=f"steps_{axis}"), extent
    return op.yields("Concat", *rows, axis=0)


def _at_least_one(op: Writer, size: str) -> str:
    """A size to divide by: where it is zero there are no places, but kernels object to the zero all the same."""
    is_none = op.add("Cast", op.add("Equal", size, op.number(0), tail="is_none"), tail="one_for_none", to=_INT64)
    return op.add("Add", size, is_none, tail="steps_along")


def _places(op: Writer, size: str, counts: str) -> str:
    """The places in a row, from zero up to its size, that its counts of 0 and 1 tell to take."""
    tails = ("at", "goes_on", "found", "still", "count", "place", "next", "more")
    at, goes_on, found, still, count, place, following, more = map(op.fresh, tails)
    nodes = [
        make_node("Identity", [goes_on], [still]),
        make_node("Reshape", [at, op.number(1)], [place]),
        make_node("Gather", [counts, place], [count], axis=0),
        make_node("Tile", [place, count], [following]),
        make_node("Concat", [found, following], [more], axis=0),
    ]
    inputs = [(at, _INT64, ()), (goes_on, TensorProto.BOOL, ()), (found, _INT64, (None,))]
    graph = op.graph("places", nodes, inputs, [(still, TensorProto.BOOL, ()), (more, _INT64, (None,))])
    return op.add("Loop", size, "", op.integers(np.zeros(0), "none"), tail="taken", body=graph)


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
    op.make_room(2, *shape)
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
