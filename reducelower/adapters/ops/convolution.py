"""Col2Im and DeformConv for targets that lack them; not text, since numpy computes indices for known sizes.

In Col2Im every pixel of the image gathers the elements of the blocks that cover it. DeformConv, over two spatial axes,
gathers four neighbours of each place, weighs them, and takes one MatMul.

Sources: the pages of Col2Im (18), DeformConv (19, 22).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.rules import rule
from reducelower.errors import RefusedError
from reducelower.model.attributes import value_of
from reducelower.model.numbers import HALVES

_SMALL = (TensorProto.BOOL, TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.UINT16)
"""Types that ReduceSum does not take; sums wrap around in integers, and a sum of bools is whether any is true."""


@rule("Col2Im", "absent", opset=13)
def _column_to_image(op: Writer) -> list[NodeProto]:
    """Gather by a table: for each pixel of the image, the element of each row of the columns that falls on it."""
    image, block = op.constant_input(1), op.constant_input(2)
    if image is None or block is None:
        name = op.node.input[1 if image is None else 2]
        raise RefusedError(
            f"{name!r}, which says how large the image or a block is, is computed at run time",
            f"make {name!r} a constant",
        )
    sizes, kernel = [int(size) for size in image], [int(size) for size in block]
    op.make_room(*sizes, *kernel)
    places = _blocks(op, sizes, kernel)
    rows, columns = prod(kernel), _table(places, sizes)
    count = prod(along.shape[1] for along in places)
    own_type = op.element_type(0)
    element_type = TensorProto.INT32 if own_type in _SMALL else own_type

    # The channels are inferred by -1: (N, C, elements of a block * blocks).
    shape = op.add("Shape", op.input(0))
    batch = op.add("Slice", shape, op.integers([0], "number_0"), op.integers([1], "number_1"), tail="batch")
    flat_shape = op.add("Concat", batch, op.integers([-1, rows * count], "columns"), axis=0)
    flat = op.add("Reshape", op.cast(op.input(0), own_type, element_type, "wide"), flat_shape, tail="flat")
    # A zero is appended, for blocks that do not cover a pixel.
    flat = op.add(
        "Pad", flat, op.integers([0, 0, 0, 0, 0, 1], "pads"), op.constant(0, element_type, "zero"), tail="more"
    )
    covering = op.add("Gather", flat, op.integers(columns, "covering"), tail="covering", axis=2)
    summed = op.add("ReduceSum", covering, op.integers([-1], "axes_m1"), tail="summed", keepdims=0)
    result_shape = op.add("Concat", batch, op.integers([-1, *sizes], "image"), tail="image_shape", axis=0)
    return op.yields_cast(op.add("Reshape", summed, result_shape, tail="result"), element_type, own_type)


def _blocks(op: Writer, sizes: list[int], kernel: list[int]) -> list[np.ndarray]:
    """For each axis, the position of each element of each block: (elements of a block, blocks)."""
    rank = len(sizes)
    strides, dilations = (op.attribute(name) or [1] * rank for name in ("strides", "dilations"))
    pads = op.attribute("pads") or [0] * 2 * rank
    positions = []
    for axis, (size, extent) in enumerate(zip(sizes, kernel, strict=True)):
        room = size + pads[axis] + pads[axis + rank] - (extent - 1) * dilations[axis] - 1
        count = room // strides[axis] + 1
        op.make_room(extent, count)
        starts = np.arange(count) * strides[axis] - pads[axis]
        positions.append(np.arange(extent)[:, None] * dilations[axis] + starts)
    return positions


def _table(places: list[np.ndarray], sizes: list[int]) -> np.ndarray:
    """Indices into the columns by pixel of the image and element of a block; past the end for elements outside."""
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


_INT64 = TensorProto.INT64


@dataclass(frozen=True)
class _Sizes:
    """The sizes of one node, except the batch."""

    channels: int
    height: int
    width: int
    results: int
    kernel: tuple[int, int]
    places: tuple[int, int]
    groups: int
    offset_groups: int

    @property
    def taps(self) -> int:
        """The number of elements of the kernel."""
        return self.kernel[0] * self.kernel[1]

    @property
    def spots(self) -> int:
        """The number of elements in a channel of the result."""
        return self.places[0] * self.places[1]


@rule("DeformConv", "absent as of 19", opset=13)
def _deform_conv(op: Writer) -> list[NodeProto]:
    """Multiply the weights by the columns of a convolution, which are interpolated where the offsets point."""
    sizes, own_type = _sizes(op), op.element_type(0)
    # As kernels do for sums of 16-bit floats; these are also too coarse for coordinates.
    wide = TensorProto.FLOAT if own_type in HALVES else own_type
    op.node.input[:] = [name and op.cast(name, own_type, wide, "wide") for name in op.node.input]
    columns = _columns(op, sizes, wide)
    per_group = sizes.channels // sizes.groups * sizes.taps
    columns = _reshaped(op, columns, [-1, sizes.groups, per_group, sizes.spots], "columns")
    weights = _reshaped(op, op.input(1), [sizes.groups, sizes.results // sizes.groups, per_group], "weights")
    product = op.add("MatMul", weights, columns, tail="product")
    result_shape = op.integers([-1, sizes.results, *sizes.places], "result_shape")
    result = op.add("Reshape", product, result_shape, tail="unbiased")
    if op.input(3):
        result = op.add("Add", result, _reshaped(op, op.input(3), [sizes.results, 1, 1], "bias"), tail="result")
    return op.yields_cast(result, wide, own_type)


def _sizes(op: Writer) -> _Sizes:
    data, weights, offset = (op.scope.shape(name) for name in op.node.input[:3])
    for name, shape in zip(op.node.input, (data, weights, offset), strict=False):
        if shape is None or None in shape[1:]:
            raise RefusedError(
                f"the sizes of {name!r} are not known, which other operators need", "give it a fixed shape, batch aside"
            )
    assert data is not None
    assert weights is not None
    assert offset is not None
    if len(data) != 4 or weights[0] is None:
        raise RefusedError(f"its data has {len(data) - 2} spatial axes, and other operators can express only two")
    known = [size or 0 for size in (*data[1:], weights[0], *weights[2:], *offset[2:])]
    channels, height, width, results, tall, wide, down, across = known
    groups, offset_groups = int(op.attribute("group", 1)), int(op.attribute("offset_group", 1))
    return _Sizes(channels, height, width, results, (tall, wide), (down, across), groups, offset_groups)


def _reshaped(op: Writer, name: str, shape: list[int], tail: str) -> str:
    return op.add("Reshape", name, op.integers(shape, f"{tail}_shape"), tail=tail)


def _columns(op: Writer, sizes: _Sizes, element_type: int) -> str:
    """The value under each tap of the kernel at each place: (N, offset groups, channels of one, taps * places)."""
    shape = [-1, sizes.offset_groups, sizes.taps, 2, sizes.spots]
    offset = _reshaped(op, op.input(2), shape, "offsets")
    low: list[str] = []
    beyond: list[str] = []
    op.make_room(2, sizes.taps, sizes.spots)
    for axis, base in enumerate(_bases(op.node, sizes)):
        along = op.add("Gather", offset, op.integers(axis, f"axis_{axis}"), tail="moved", axis=3)
        place = op.add("Add", along, op.constant(base, element_type, "base"), tail="place")
        low.append(op.add("Floor", place, tail="low"))
        beyond.append(op.add("Sub", place, low[-1], tail="beyond"))
    # A zero is appended, for neighbours outside.
    area = sizes.height * sizes.width
    inside = sizes.channels // sizes.offset_groups
    flat = _reshaped(op, op.input(0), [-1, sizes.offset_groups, inside, area], "flat")
    pads = op.integers([0, 0, 0, 0, 0, 0, 0, 1], "pads")
    flat = op.add("Pad", flat, pads, op.constant(0, element_type, "zero"), tail="more")
    one = op.constant(1, element_type, "one")
    total = ""
    for down, right in ((0, 0), (0, 1), (1, 0), (1, 1)):
        near = [op.add("Add", at, one, tail="next") if far else at for at, far in zip(low, (down, right), strict=True)]
        shares = [
            part if far else op.add("Sub", one, part, tail="rest")
            for part, far in zip(beyond, (down, right), strict=True)
        ]
        share = op.add("Mul", *shares, tail="share")
        seen = _gathered(op, flat, near, sizes, element_type)
        part = op.add("Mul", seen, _as_columns(op, share, sizes), tail="part")
        total = op.add("Add", total, part, tail="between") if total else part
    return op.add("Mul", total, _as_columns(op, op.input(4), sizes), tail="masked") if op.input(4) else total


def _bases(node: NodeProto, sizes: _Sizes) -> list[np.ndarray]:
    """For both axes, the position of each tap at each place, without offsets: (taps, places)."""
    strides, dilations = (value_of(node, name) or [1, 1] for name in ("strides", "dilations"))
    pads = value_of(node, "pads") or [0, 0, 0, 0]
    along = [
        np.arange(sizes.kernel[axis])[:, None] * dilations[axis]
        + np.arange(sizes.places[axis]) * strides[axis]
        - pads[axis]
        for axis in (0, 1)
    ]
    grid = (*sizes.kernel, *sizes.places)
    rows = np.broadcast_to(along[0][:, None, :, None], grid)
    columns = np.broadcast_to(along[1][None, :, None, :], grid)
    return [rows.reshape(sizes.taps, sizes.spots), columns.reshape(sizes.taps, sizes.spots)]


def _gathered(op: Writer, flat: str, near: list[str], sizes: _Sizes, element_type: int) -> str:
    """The elements at integer positions; zero outside."""
    tests = [
        op.add(op_type, at, op.constant(bound, element_type, "bound"), tail="is_inside")
        for at, length in zip(near, (sizes.height, sizes.width), strict=True)
        for op_type, bound in (("Greater", -1), ("Less", length))
    ]
    inside = tests[0]
    for test in tests[1:]:
        inside = op.add("And", inside, test, tail="are_inside")
    row, column = (op.add("Cast", at, tail="whole", to=_INT64) for at in near)
    ahead = op.add("Mul", row, op.integers(sizes.width, "width"), tail="ahead")
    nothing = op.integers(sizes.height * sizes.width, "behind_the_last")
    index = op.add("Where", inside, op.add("Add", ahead, column, tail="at"), nothing, tail="index")
    indices = _as_columns(op, index, sizes)
    # The indices are the same for every channel of a group.
    batch = op.integers([1, 1, sizes.channels // sizes.offset_groups, 1], "each_channel")
    return op.add("GatherElements", flat, op.add("Expand", indices, batch, tail="indices"), tail="seen", axis=3)


def _as_columns(op: Writer, name: str, sizes: _Sizes) -> str:
    return _reshaped(op, name, [-1, sizes.offset_groups, 1, sizes.taps * sizes.spots], "one_row")
