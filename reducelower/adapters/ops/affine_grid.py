"""AffineGrid for targets that lack it; not text, since numpy computes the grid.

The result is the grid of the identity, which is constant, times the given matrices. The function body in the schema
cannot be used: it squeezes away a batch of one, and passes vectors to Range, which takes scalars.

Source: the page of AffineGrid (20).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.errors import RefusedError
from reducelower.model.numbers import HALVES

_LARGEST_GRID = 1 << 20


@expresses("AffineGrid", opset=13)
def _affine_grid(op: Writer) -> list[NodeProto]:
    """Multiply (..., x, y, 1) of every place by the transposed matrix; 16-bit floats in float, as sums may cancel."""
    own_type = op.element_type(0)
    element_type = TensorProto.FLOAT if own_type in HALVES else own_type
    aligned = bool(op.attribute("align_corners", 0))
    size = op.constant_input(1)
    if size is not None and np.prod(size[2:].astype(np.int64)) * len(size) <= _LARGEST_GRID:
        batch, _, *spatial = size.astype(np.int64).tolist()
        rows = op.constant(_rows(spatial, aligned), element_type, "base_grid")
        shape = op.integers([batch, *spatial, len(spatial)], "grid_shape")
    else:
        rows, shape = _rows_at_run_time(op, element_type, aligned)
    transposed = op.add("Transpose", op.cast(op.input(0), own_type, element_type, "wide"), perm=[0, 2, 1])
    return op.yields("Reshape", op.cast(op.add("MatMul", rows, transposed), element_type, own_type, "grid"), shape)


def _rows(spatial: list[int], aligned: bool) -> NDArray[np.float64]:
    places = np.meshgrid(*(_places(length, aligned) for length in spatial), indexing="ij")
    # The innermost axis comes first in a coordinate.
    return np.stack([*(axis.reshape(-1) for axis in reversed(places)), np.ones(places[0].size)], axis=1)


def _rows_at_run_time(op: Writer, element_type: int, aligned: bool) -> tuple[str, str]:
    """The rows and the shape of the result, for a size that is computed at run time."""
    matrix = op.scope.shape(op.input(0))
    count = None if matrix is None else matrix[1]
    if count is None:
        raise RefusedError(
            "neither its size nor the shape of theta is known, so it may be 2-D or 3-D",
            "opset 20 is the oldest that has AffineGrid",
        )
    size = op.input(1)

    def number(value: float, tail: str) -> str:
        return op.constant(value, element_type, tail)

    spatial = op.add("Slice", size, op.integers([2], "first"), op.integers([2 + count], "past"), tail="spatial")
    column = op.add("Concat", spatial, op.integers([1], "single"), tail="column", axis=0)
    columns = []
    for axis in reversed(range(count)):
        length = op.add("Gather", size, op.integers(2 + axis, "axis"), tail="length", axis=0)
        steps = op.add("Range", op.integers(0, "zero"), length, op.integers(1, "unit"), tail="steps")
        steps = op.add("Cast", steps, tail="numbers", to=element_type)
        length = op.add("Cast", length, tail="count", to=element_type)
        if aligned:
            gaps = op.add("Max", op.add("Sub", length, number(1, "one")), number(1, "one"), tail="gaps")
            place = op.add("Div", op.add("Mul", steps, number(2, "two")), gaps, tail="share")
        else:
            middle = op.add("Add", op.add("Mul", steps, number(2, "two")), number(1, "one"), tail="middle")
            place = op.add("Div", middle, length, tail="share")
        place = op.add("Sub", place, number(1, "one"), tail="place")
        along = op.integers([1] * axis + [-1] + [1] * (count - axis), "along")
        columns.append(op.add("Expand", op.add("Reshape", place, along), column, tail="places"))
    columns.append(op.add("Expand", number(1, "one"), column, tail="ones"))
    grid = op.add("Concat", *columns, tail="base_grid", axis=-1)
    rows = op.add("Reshape", grid, op.integers([-1, count + 1], "rows"))
    batch = op.add("Slice", size, op.integers([0], "start"), op.integers([1], "end"), tail="batch")
    return rows, op.add("Concat", batch, spatial, op.integers([count], "coordinates"), tail="grid_shape", axis=0)


def _places(length: int, aligned: bool) -> NDArray[np.float64]:
    """Coordinates of the elements of an axis from -1 to 1: from end to end, or the middles of equal parts."""
    if aligned:
        return np.arange(length) * 2 / max(length - 1, 1) - 1
    return (2 * np.arange(length) + 1) / length - 1
