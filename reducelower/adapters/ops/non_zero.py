"""NonZero, which came with opset 9, by a Loop and arithmetic: as many steps as the data has dimensions.

Source: the page of NonZero (9).
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.errors import RefusedError
from reducelower.model.attributes import make_node

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
