"""Reshape with allowzero, Shape with start and end, GatherND with batches, Tile, Gemm and Concat at their boundaries.

Sources: https://onnx.ai/onnx/operators/onnx__Reshape.html (13, 14),
https://onnx.ai/onnx/operators/onnx__Shape.html (13, 15),
https://onnx.ai/onnx/operators/onnx__GatherND.html (11, 12),
https://onnx.ai/onnx/operators/onnx__Tile.html (1, 6).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, helper

from reducelower.adapters.builder import Writer
from reducelower.adapters.ops.slicing import ramp
from reducelower.adapters.registry import Outcome, lowers, raises
from reducelower.errors import RefusedError
from reducelower.model.numbers import FIRST_FLOATS
from reducelower.model.schemas import element_type_name

__all__ = ["without_batches"]


@lowers("Reshape", 14)
def _lower_allowzero(op: Writer) -> Outcome:
    """A zero meant the input's own dimension; with allowzero it is a dimension of no elements.

    Such a shape has no -1, and the data is empty, so one zero that is known may be left to be worked out as -1.
    """
    if not op.attribute("allowzero", 0):
        return None
    op.drop("allowzero")
    shape = op.constant_input(1)
    if shape is None:
        element_type = op.element_type(0)
        return op.yields_reshaped(op.input(0), op.input(1), element_type, may_infer=True)
    zeros = int((shape == 0).sum())
    if zeros == 0:
        return None
    op.scope.release(op.input(1))
    if zeros == 1:
        op.node.input[1] = op.integers(np.where(shape == 0, -1, shape), "shape")
        return None
    dtype = helper.tensor_dtype_to_np_dtype(op.element_type(0))
    return op.yields("Identity", op.scope.add_constant(np.zeros(shape.tolist(), dtype), "nothing"))


@lowers("Shape", 15)
def _lower_range(op: Writer) -> Outcome:
    """A part of the shape is a slice of it."""
    start, end = int(op.attribute("start", 0)), op.attribute("end")
    if not start and end is None:
        return None
    bounds = [
        op.integers([bound], f"{tail}_{bound}".replace("-", "m"))
        for bound, tail in ((start, "start"), (2**63 - 1 if end is None else int(end), "end"))
    ]
    return op.yields("Slice", op.add("Shape", op.input(0)), *bounds)


@lowers("GatherND", 12)
def _lower_batch_dims(op: Writer) -> Outcome:
    """Indices without batches begin with the place of their batch."""
    return without_batches(op) if op.attribute("batch_dims", 0) else None


def without_batches(op: Writer) -> list[NodeProto]:
    """GatherND with batch_dims as one without, written for opset 11."""
    batches = int(op.attribute("batch_dims"))
    data, indices = op.node.input
    rank = op.scope.needed_rank(indices)
    shapes = [op.scope.shape(name) for name in (data, indices)]
    sizes = [_batch_size([shape[axis] for shape in shapes if shape is not None], axis) for axis in range(batches)]
    known = op.scope.constant(indices)
    if known is not None:
        op.scope.release(indices)
        places = np.moveaxis(np.indices(known.shape[:-1], np.int64)[:batches], 0, -1)
        whole = op.integers(np.concatenate([places, known], axis=-1), "indices")
        return op.yields("GatherND", data, whole)
    # Indices times zero carry their shape.
    first = op.add("Slice", indices, *(op.number(bound) for bound in (0, 1, rank - 1)))
    nothing = op.add("Mul", first, op.integers(0, "zero"), tail="zeros")
    extents = op.add("Shape", indices, tail="extents") if None in sizes else ""
    columns = []
    for axis, size in enumerate(sizes):
        column = np.array([1] * axis + [-1] + [1] * (rank - 1 - axis))
        if size is None:
            extent = op.add("Gather", extents, op.number(axis), tail=f"extent_{axis}", axis=0)
            place = op.add("Reshape", ramp(op, extent), op.integers(column, "column"), tail="places")
        else:
            place = op.integers(np.arange(size).reshape(column), f"places_{axis}")
        columns.append(op.add("Add", nothing, place, tail=f"batch_{axis}"))
    return op.yields("GatherND", data, op.add("Concat", *columns, indices, tail="indices", axis=rank - 1))


def _batch_size(stated: Sequence[int | None], axis: int) -> int | None:
    sizes = sorted({size for size in stated if size is not None})
    if len(sizes) > 1:
        raise RefusedError(
            f"batch axis {axis} is of size {stated[0]} in its data and {stated[-1]} in its indices",
            "correct the shapes that the model states",
        )
    return sizes[0] if sizes else None


@raises("Tile", 6)
def _raise_tile(op: Writer) -> Outcome:
    """It used to repeat one axis; since then it takes a count per axis."""
    tiles, axis = (op.scope.constant(name) for name in op.node.input[1:3])
    if tiles is None or axis is None:
        raise RefusedError("its repeats are computed at run time, and opset 6 takes them another way")
    repeats = np.ones(op.rank(0), np.int64)
    repeats[int(axis.reshape(-1)[0])] = int(tiles.reshape(-1)[0])
    op.scope.release(*op.node.input[1:])
    del op.node.input[1:]
    op.node.input.append(op.scope.add_constant(repeats, "repeats"))
    return None


@lowers("Tile", 6)
def _lower_tile(op: Writer) -> Outcome:
    """One axis at a time; the counts are of the data's own element type, a float, and what is none is concatenated."""
    repeats = op.constant_input(1)
    if repeats is None:
        raise RefusedError("its repeats are computed at run time", "opset 6 is the oldest that takes them so")
    element_type = op.element_type(0)
    counts = [(axis, int(count)) for axis, count in enumerate(repeats.reshape(-1).tolist()) if count != 1]
    is_float = element_type in FIRST_FLOATS
    if not is_float and not all(0 < count <= _MOST_COPIES for _, count in counts):
        raise RefusedError(
            f"it repeats {element_type_name(element_type)} {max(count for _, count in counts)} times, and Tile takes "
            "floats only",
            "opset 6 is the oldest that takes others",
        )
    op.scope.release(op.input(1))
    data = op.input(0)
    for axis, count in counts:
        if is_float:
            where = (op.constant(value, element_type, tail) for value, tail in ((count, "tiles"), (axis, "axis")))
            data = op.add("Tile", data, *where, tail=f"tiled_{axis}")
        else:
            data = op.add("Concat", *[data] * count, tail=f"tiled_{axis}", axis=axis)
    return op.yields("Identity", data)


_MOST_COPIES = 64
