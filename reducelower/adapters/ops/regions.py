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
from reducelower.model.attributes import drop_attribute, set_attribute, value_of
from reducelower.scope.scope import Scope

_FLOAT, _INT64 = TensorProto.FLOAT, TensorProto.INT64
_WIDE = (TensorProto.FLOAT, TensorProto.DOUBLE)


@lowers("RoiAlign", 16)
def _lower_half_pixel(node: NodeProto, scope: Scope) -> Outcome:
    """Before 16 regions were not shifted by half a pixel, and were at least one wide and high."""
    if value_of(node, "coordinate_transformation_mode", "half_pixel") == "output_half_pixel":
        drop_attribute(node, "coordinate_transformation_mode")
        return None
    return _written_out(node, scope, is_shifted=True)


@raises("RoiAlign", 16)
def _raise_half_pixel(node: NodeProto, scope: Scope) -> Outcome:
    set_attribute(node, "coordinate_transformation_mode", "output_half_pixel")
    return None


@expresses("RoiAlign", opset=13, reads=10)
def _roi_align(node: NodeProto, scope: Scope) -> list[NodeProto]:
    return _written_out(node, scope, is_shifted=False)


def _written_out(node: NodeProto, scope: Scope, *, is_shifted: bool) -> list[NodeProto]:
    if value_of(node, "mode", "avg") != "avg":
        raise RefusedError(
            "it takes the largest of weighted elements (mode=max), where runtimes do not agree on the weights",
            f"opset {16 if is_shifted else 10} is the oldest that has it",
        )
    body = Writer(node, scope)
    element_type = scope.needed_element_type(node.input[0])
    data, regions, batches = node.input
    wide = element_type if element_type in _WIDE else _FLOAT
    data, regions = (body.cast(name, element_type, wide, "wide") for name in (data, regions))
    scale = body.constant(float(value_of(node, "spatial_scale", 1.0)), wide, "spatial_scale")
    regions = body.add("Mul", regions, scale, tail="scaled")
    if is_shifted:
        regions = body.add("Sub", regions, body.constant(0.5, wide, "half"), tail="shifted")
    rows, columns = (
        body.add(
            "Unsqueeze",
            _weights(body, regions, (data, axis), int(value_of(node, name, 1)), wide, is_shifted=is_shifted),
            body.number(1),
            tail="of_channels",
        )
        for name, axis in (("output_height", 2), ("output_width", 3))
    )
    images = body.add("Gather", data, batches, tail="images", axis=0)
    product = body.add("MatMul", rows, images, tail="rows")
    columns = body.add("Transpose", columns, tail="columns", perm=[0, 1, 3, 2])
    return body.yields_cast(body.add("MatMul", product, columns, tail="wide_result"), wide, element_type)


def _weights(body: Writer, regions: str, side: tuple[str, int], count: int, wide: int, *, is_shifted: bool) -> str:
    """The weight of each element along an axis of the data in each of `count` bins of each region: (R, count, size).

    A sample has the weight 1 less its distance at the two elements beside it; one that is more than one element outside
    of the data counts as 0.
    """

    def number(value: float, tail: str) -> str:
        return body.constant(value, wide, tail)

    data, axis = side
    low, high = (body.add("Gather", regions, body.number(place), tail="end", axis=1) for place in (3 - axis, 5 - axis))
    length = body.add("Sub", high, low, tail="length")
    if not is_shifted:
        length = body.add("Max", length, number(1, "one"), tail="at_least_one")
    bins = body.add("Div", length, number(count, "bins"), tail="bin")
    fixed = int(value_of(body.node, "sampling_ratio", 0))
    if fixed > 0:
        samples, steps = number(fixed, "samples"), body.constant(np.arange(fixed), wide, "steps")
    else:
        wanted = body.add("Ceil", bins, tail="wanted")
        samples = body.add("Max", wanted, number(1, "one"), tail="samples")
        row = body.add("Reshape", samples, body.number(-1), tail="row")
        most = body.add("ReduceMax", body.add("Concat", row, body.constant([1], wide, "least"), axis=0), keepdims=1)
        steps = body.add("Cast", ramp(body, body.add("Cast", most, tail="most", to=_INT64)), tail="steps", to=wide)
    middles = body.add("Div", body.add("Add", steps, number(0.5, "half"), tail="middle"), samples, tail="share")
    within = body.add("Mul", bins, middles, tail="within")
    starts = body.add("Add", low, body.add("Mul", bins, body.constant(np.arange(count), wide, "places")), tail="start")
    place = body.add("Add", *(
        body.add("Unsqueeze", name, body.integers(axes, "axes"), tail="beside")
        for name, axes in ((starts, [2, 3]), (within, [1, 3]))
    ), tail="place")  # fmt: skip
    length_of = body.add("Gather", body.add("Shape", data), body.number(axis), tail="size", axis=0)
    size = body.add("Cast", length_of, tail="as_float", to=wide)
    last = body.add("Sub", size, number(1, "one"), tail="last")
    before = body.add("Less", place, number(-1, "minus_one"), tail="is_before")
    outside = body.add("Or", before, body.add("Less", size, place, tail="is_behind"), tail="is_outside")
    inside = body.add("Min", body.add("Max", place, number(0, "zero"), tail="from_first"), last, tail="inside")
    elements = body.add("Cast", ramp(body, length_of), tail="elements", to=wide)
    far = body.add("Abs", body.add("Sub", inside, elements, tail="off"), tail="far")
    weights = body.add("Max", body.add("Sub", number(1, "one"), far, tail="near"), number(0, "zero"), tail="weight")
    if fixed <= 0:
        column = body.integers([-1, 1, 1, 1], "column")
        steps_of = body.add("Reshape", steps, body.integers([-1, 1], "step_column"), tail="step")
        taken = body.add("Less", steps_of, body.add("Reshape", wanted, column, tail="wanted_of"), tail="is_taken")
        outside = body.add("Or", outside, body.add("Not", taken, tail="is_spare"), tail="is_left_out")
        samples = body.add("Unsqueeze", samples, body.number(2), tail="samples_of")
    weights = body.add("Where", outside, number(0, "zero"), weights, tail="kept")
    return body.add("Div", body.add("ReduceSum", weights, body.number(2), tail="sum", keepdims=0), samples, tail="mean")
