"""Col2Im where the target has none: every place of the image gathers the elements of the blocks that cover it.

Source: https://onnx.ai/onnx/operators/onnx__Col2Im.html (18).
"""

from __future__ import annotations

from math import prod

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.errors import RefusedError
from reducelower.model.attributes import value_of

_LARGEST_TABLE = 1 << 22

_SMALL = (TensorProto.BOOL, TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.UINT16)
"""Types that ReduceSum does not take; sums wrap around in them, and truth values are true where any is."""


@expresses("Col2Im", opset=13)
def _column_to_image(op: Writer) -> list[NodeProto]:
    """A table tells for each place of the image which element of each row of the columns falls on it, if any does."""
    image, block = op.constant_input(1), op.constant_input(2)
    if image is None or block is None:
        name = op.node.input[1 if image is None else 2]
        raise RefusedError(
            f"{name!r}, which says how large the image or a block is, is computed at run time",
            f"make {name!r} a constant",
        )
    sizes, kernel = [int(size) for size in image], [int(size) for size in block]
    if prod(sizes) * prod(kernel) > _LARGEST_TABLE:
        raise RefusedError(f"its image of {sizes} and blocks of {kernel} take a table that is too large to write down")
    rows, columns = prod(kernel), _table(op.node, sizes, kernel)
    own_type = op.element_type(0)
    element_type = TensorProto.INT32 if own_type in _SMALL else own_type

    # The batch stays, and the channels are what is left over: (N, C, elements of a block, blocks).
    shape = op.add("Shape", op.input(0))
    batch = op.add("Slice", shape, op.integers([0], "number_0"), op.integers([1], "number_1"), tail="batch")
    flat_shape = op.add("Concat", batch, op.integers([-1, rows * _count(op.node, sizes, kernel)], "columns"), axis=0)
    flat = op.add("Reshape", op.cast(op.input(0), own_type, element_type, "wide"), flat_shape, tail="flat")
    # Behind the last column lies a zero, for the blocks that do not cover a place.
    flat = op.add(
        "Pad", flat, op.integers([0, 0, 0, 0, 0, 1], "pads"), op.constant(0, element_type, "zero"), tail="more"
    )
    covering = op.add("Gather", flat, op.integers(columns, "covering"), tail="covering", axis=2)
    summed = op.add("ReduceSum", covering, op.integers([-1], "axes_m1"), tail="summed", keepdims=0)
    result_shape = op.add("Concat", batch, op.integers([-1, *sizes], "image"), tail="image_shape", axis=0)
    return op.yields_cast(op.add("Reshape", summed, result_shape, tail="result"), element_type, own_type)


def _blocks(node: NodeProto, sizes: list[int], kernel: list[int]) -> list[np.ndarray]:
    """Where each element of each block lies along each axis, as (elements of a block, blocks) of that axis."""
    rank = len(sizes)
    strides, dilations = (value_of(node, name) or [1] * rank for name in ("strides", "dilations"))
    pads = value_of(node, "pads") or [0] * 2 * rank
    found = []
    for axis, (size, extent) in enumerate(zip(sizes, kernel, strict=True)):
        room = size + pads[axis] + pads[axis + rank] - (extent - 1) * dilations[axis] - 1
        starts = np.arange(room // strides[axis] + 1) * strides[axis] - pads[axis]
        found.append(np.arange(extent)[:, None] * dilations[axis] + starts)
    return found


def _count(node: NodeProto, sizes: list[int], kernel: list[int]) -> int:
    """How many blocks there are."""
    return prod(places.shape[1] for places in _blocks(node, sizes, kernel))


def _table(node: NodeProto, sizes: list[int], kernel: list[int]) -> np.ndarray:
    """Where in the columns each place of the image finds each element of a block; past their end if it is not there."""
    places = _blocks(node, sizes, kernel)
    elements, blocks = (tuple(along.shape[side] for along in places) for side in (0, 1))
    past = prod(elements) * prod(blocks)
    table = np.full((prod(sizes), prod(elements)), past, np.int64)
    for element in np.ndindex(elements):
        row = int(np.ravel_multi_index(element, elements))
        at = np.meshgrid(*(along[one] for along, one in zip(places, element, strict=True)), indexing="ij")
        inside = np.logical_and.reduce([(one >= 0) & (one < size) for one, size in zip(at, sizes, strict=True)])
        targets = np.ravel_multi_index([one[inside] for one in at], sizes)
        table[targets, row] = row * prod(blocks) + np.flatnonzero(inside)
    return table
