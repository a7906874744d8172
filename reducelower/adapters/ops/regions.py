"""RoiAlign written out: below opset 10, and below 16 where it shifts regions by half a pixel.

The mean over a grid of samples, each between four elements, is a product with one matrix of weights for the rows of a
region and one for its columns. How many samples there are may hang on the size of each region.

Source: https://onnx.ai/onnx/operators/onnx__RoiAlign.html (10, 16).
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.ops.slicing import ramp
from reducelower.adapters.registry import Outcome, lowers, raises
from reducelower.errors import RefusedError

_FLOAT, _INT64 = TensorProto.FLOAT, TensorProto.INT64
_WIDE = (TensorProto.FLOAT, TensorProto.DOUBLE)


@lowers("RoiAlign", 16)
def _lower_half_pixel(op: Writer) -> Outcome:
    """Before 16 regions were not shifted by half a pixel, and were at least one wide and high."""
    if op.attribute("coordinate_transformation_mode", "half_pixel") == "output_half_pixel":
        op.drop("coordinate_transformation_mode")
        return None
    return _written_out(op, is_shifted=True)


@raises("RoiAlign", 16)
def _raise_half_pixel(op: Writer) -> Outcome:
    op.set("coordinate_transformation_mode", "output_half_pixel")
    return None


@expresses("RoiAlign", opset=13, reads=10)
def _roi_align(op: Writer) -> list[NodeProto]:
    return _written_out(op, is_shifted=False)


def _written_out(op: Writer, *, is_shifted: bool) -> list[NodeProto]:
    if op.attribute("mode", "avg") != "avg":
        raise RefusedError(
            "it takes the largest of weighted elements (mode=max), where runtimes do not agree on the weights",
            f"opset {16 if is_shifted else 10} is the oldest that has it",
        )
    element_type = op.element_type(0)
    data, regions, batches = op.node.input
    wide = element_type if element_type in _WIDE else _FLOAT
    data, regions = (op.cast(name, element_type, wide, "wide") for name in (data, regions))
    scale = op.constant(float(op.attribute("spatial_scale", 1.0)), wide, "spatial_scale")
    regions = op.add("Mul", regions, scale, tail="scaled")
    if is_shifted:
        regions = op.add("Sub", regions, op.constant(0.5, wide, "half"), tail="shifted")
    rows, columns = (
        op.add(
            "Unsqueeze",
            _weights(op, regions, (data, axis), int(op.attribute(name, 1)), wide, is_shifted=is_shifted),
            op.number(1),
            tail="of_channels",
        )
        for name, axis in (("output_height", 2), ("output_width", 3))
    )
    images = op.add("Gather", data, batches, tail="images", axis=0)
    product = op.add("MatMul", rows, images, tail="rows")
    columns = op.add("Transpose", columns, tail="columns", perm=[0, 1, 3, 2])
    return op.yields_cast(op.add("MatMul", product, columns, tail="wide_result"), wide, element_type)


def _weights(op: Writer, regions: str, side: tuple[str, int], count: int, wide: int, *, is_shifted: bool) -> str:
    """The weight of each element along an axis of the data in each of `count` bins of each region: (R, count, size).

    A sample has the weight 1 less its distance at the two elements beside it; one that is more than one element outside
    of the data counts as 0.
    """

    def number(value: float, tail: str) -> str:
        return op.constant(value, wide, tail)

    data, axis = side
    low, high = (op.add("Gather", regions, op.number(place), tail="end", axis=1) for place in (3 - axis, 5 - axis))
    length = op.add("Sub", high, low, tail="length")
    if not is_shifted:
        length = op.add("Max", length, number(1, "one"), tail="at_least_one")
    bins = op.add("Div", length, number(count, "bins"), tail="bin")
    fixed = int(op.attribute("sampling_ratio", 0))
    if fixed > 0:
        samples, steps = number(fixed, "samples"), op.constant(np.arange(fixed), wide, "steps")
    else:
        wanted = op.add("Ceil", bins, tail="wanted")
        samples = op.add("Max", wanted, number(1, "one"), tail="samples")
        row = op.add("Reshape", samples, op.number(-1), tail="row")
        most = op.add("ReduceMax", op.add("Concat", row, op.constant([1], wide, "least"), axis=0), keepdims=1)
        steps = op.add("Cast", ramp(op, op.add("Cast", most, tail="most", to=_INT64)), tail="steps", to=wide)
    middles = op.add("Div", op.add("Add", steps, number(0.5, "half"), tail="middle"), samples, tail="share")
    within = op.add("Mul", bins, middles, tail="within")
    starts = op.add("Add", low, op.add("Mul", bins, op.constant(np.arange(count), wide, "places")), tail="start")
    place = op.add("Add", *(
        op.add("Unsqueeze", name, op.integers(axes, "axes"), tail="beside")
        for name, axes in ((starts, [2, 3]), (within, [1, 3]))
    ), tail="place")  # fmt: skip
    length_of = op.add("Gather", op.add("Shape", data), op.number(axis), tail="size", axis=0)
    size = op.add("Cast", length_of, tail="as_float", to=wide)
    last = op.add("Sub", size, number(1, "one"), tail="last")
    before = op.add("Less", place, number(-1, "minus_one"), tail="is_before")
    outside = op.add("Or", before, op.add("Less", size, place, tail="is_behind"), tail="is_outside")
    inside = op.add("Min", op.add("Max", place, number(0, "zero"), tail="from_first"), last, tail="inside")
    elements = op.add("Cast", ramp(op, length_of), tail="elements", to=wide)
    far = op.add("Abs", op.add("Sub", inside, elements, tail="off"), tail="far")
    weights = op.add("Max", op.add("Sub", number(1, "one"), far, tail="near"), number(0, "zero"), tail="weight")
    if fixed <= 0:
        column = op.integers([-1, 1, 1, 1], "column")
        steps_of = op.add("Reshape", steps, op.integers([-1, 1], "step_column"), tail="step")
        taken = op.add("Less", steps_of, op.add("Reshape", wanted, column, tail="wanted_of"), tail="is_taken")
        outside = op.add("Or", outside, op.add("Not", taken, tail="is_spare"), tail="is_left_out")
        samples = op.add("Unsqueeze", samples, op.number(2), tail="samples_of")
    weights = op.add("Where", outside, number(0, "zero"), weights, tail="kept")
    return op.add("Div", op.add("ReduceSum", weights, op.number(2), tail="sum", keepdims=0), samples, tail="mean")
