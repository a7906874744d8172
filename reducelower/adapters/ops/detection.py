"""RoiAlign below opset 10, and below 16 where it shifts regions by half a pixel; NonMaxSuppression below opset 10.

RoiAlign is the mean over a grid of samples, each between four elements: a product with one matrix of weights for the
rows of a region and one for its columns. How many samples there are may depend on the size of each region.

NonMaxSuppression is a Loop whose every step takes the best box that is left of each batch and class, and drops those
that overlap it too much. What the steps took is stacked, and put in the order of batches, classes and steps.

Sources: the pages of RoiAlign (10, 16), NonMaxSuppression (10, 11).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, helper

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.ops.slicing import ramp
from reducelower.adapters.registry import Outcome, lowers
from reducelower.errors import RefusedError

_FLOAT, _INT64, _BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
_WIDE = (TensorProto.FLOAT, TensorProto.DOUBLE)


@lowers("RoiAlign", 16)
def _lower_half_pixel(op: Writer) -> Outcome:
    """Before 16 regions were not shifted by half a pixel, and were at least one wide and high."""
    if op.attribute("coordinate_transformation_mode", "half_pixel") == "output_half_pixel":
        op.drop("coordinate_transformation_mode")
        return None
    return _written_out(op, is_shifted=True)


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
        samples, steps = number(fixed, "samples"), op.constant(op.numbered(0, fixed), wide, "steps")
    else:
        wanted = op.add("Ceil", bins, tail="wanted")
        samples = op.add("Max", wanted, number(1, "one"), tail="samples")
        row = op.add("Reshape", samples, op.number(-1), tail="row")
        most = op.add("ReduceMax", op.add("Concat", row, op.constant([1], wide, "least"), axis=0), keepdims=1)
        steps = op.add("Cast", ramp(op, op.add("Cast", most, tail="most", to=_INT64)), tail="steps", to=wide)
    middles = op.add("Div", op.add("Add", steps, number(0.5, "half"), tail="middle"), samples, tail="share")
    within = op.add("Mul", bins, middles, tail="within")
    starts = op.add("Add", low, op.add("Mul", bins, op.constant(op.numbered(0, count), wide, "places")), tail="start")
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


class _Side(NamedTuple):
    """Where boxes begin and end along one axis: names of tensors (batch, 1, box)."""

    low: str
    high: str


@expresses("NonMaxSuppression", opset=13)
def _non_max_suppression(op: Writer) -> list[NodeProto]:
    scores = op.input(1)
    sizes = op.add("Shape", scores, tail="sizes")
    count = op.add("Gather", sizes, op.number(2), tail="count", axis=0)
    most = op.add("Reshape", op.input(2), op.number(1), tail="most") if op.input(2) else op.number(0)
    steps = op.add("Where", op.add("Less", most, count, tail="is_less"), most, count, tail="at_most")
    steps = op.add("Reshape", steps, op.integers(np.zeros(0), "scalar"), tail="steps")
    if op.input(4):
        left = op.add("Greater", scores, op.input(4), tail="left")
    else:
        every = helper.make_tensor("every", _BOOL, [1], [True])
        left = op.add("ConstantOfShape", sizes, tail="left", value=every)
    graph = _step(op, scores, sizes, ramp(op, count))
    _, taken, valid = op.add_many("Loop", [steps, "", left], ["rest", "taken", "valid"], body=graph)
    # Steps come first where they are stacked: (step, batch, class).
    taken, valid = (op.add("Transpose", name, tail="in_order", perm=[1, 2, 0]) for name in (taken, valid))
    places = op.add("Transpose", op.add("NonZero", valid), tail="places", perm=[1, 0])
    classes = op.add("Slice", places, op.number(0), op.number(2), op.number(1), tail="classes")
    chosen = op.add("Compress", taken, op.add("Reshape", valid, op.number(-1), tail="row"), tail="chosen")
    return op.yields("Concat", classes, op.add("Unsqueeze", chosen, op.number(1), tail="column"), axis=1)


def _sides(op: Writer) -> list[_Side]:
    """Both sides of the boxes, by two corners in any order or by center and size."""

    def column(place: int) -> str:
        picked = op.add("Gather", op.input(0), op.number(place), tail=f"column_{place}", axis=2)
        return op.add("Transpose", picked, tail=f"coordinate_{place}", perm=[0, 2, 1])

    columns = [column(place) for place in range(4)]
    found = []
    for one, other in zip(columns[:2], columns[2:], strict=True):
        if op.attribute("center_point_box", 0):
            half = op.add("Div", other, op.constant(2, _FLOAT, "two"), tail="half")
            found.append(_Side(op.add("Sub", one, half, tail="low"), op.add("Add", one, half, tail="high")))
        else:
            found.append(_Side(op.add("Min", one, other, tail="low"), op.add("Max", one, other, tail="high")))
    return found


def _step(op: Writer, scores: str, sizes: str, places: str) -> GraphProto:
    """One step: the boxes that are left (batch, class, box) in; those left after it, the one taken, and if any was out.

    The scores are (batch, class, box), the places the numbers of the boxes. `op` gets the nodes that every step shares.
    """
    sides = _sides(op)
    lengths = [op.add("Sub", side.high, side.low, tail="length") for side in sides]
    area = op.add("Mul", *lengths, tail="area")
    shape = op.add("Slice", sizes, op.number(0), op.number(2), tail="batches_and_classes")
    threshold = op.input(3) or op.constant([0], _FLOAT, "no_overlap")
    zero = op.constant(0, _FLOAT, "zero")
    # Above what stands for the boxes that are gone, whatever the score.
    ranked = op.add("Max", scores, op.constant(np.finfo(np.float32).min, _FLOAT, "lowest"), tail="ranked")
    axis = op.number(2)
    step, proceeds, left = map(op.fresh, ("step", "on", "left_before"))
    inside = Writer(op.node, op.scope)

    there = inside.add("Cast", left, tail="there", to=_FLOAT)
    valid = inside.add("Greater", inside.add("ReduceMax", there, tail="any", axes=[2], keepdims=0), zero, tail="is_any")
    gone = inside.constant(-np.inf, _FLOAT, "gone")
    best = inside.add("ArgMax", inside.add("Where", left, ranked, gone, tail="rank"), tail="best", axis=2, keepdims=1)
    taken = inside.add("Equal", places, best, tail="is_taken")

    def of_taken(name: str) -> str:
        only = inside.add("Where", taken, name, zero, tail="only")
        return inside.add("ReduceSum", only, axis, tail="of_taken", keepdims=1)

    shared = []
    for side in sides:
        low = inside.add("Max", side.low, of_taken(side.low), tail="shared_low")
        high = inside.add("Min", side.high, of_taken(side.high), tail="shared_high")
        shared.append(inside.add("Max", inside.add("Sub", high, low, tail="shared"), zero, tail="shared_length"))
    common = inside.add("Mul", *shared, tail="intersection")
    union = inside.add("Sub", inside.add("Add", area, of_taken(area), tail="areas"), common, tail="union")
    overlaps = inside.add(
        "And",
        inside.add("Greater", common, zero, tail="meets"),
        inside.add("Greater", inside.add("Div", common, union, tail="share"), threshold, tail="is_much"),
        tail="overlaps",
    )
    dropped = inside.add("Not", inside.add("Or", overlaps, taken, tail="dropped"), tail="is_kept")
    rest = inside.add("And", left, dropped, tail="left_after")
    number = inside.add("Reshape", best, shape, tail="number")
    proceeds_on = inside.add("Identity", proceeds, tail="goes_on")
    boxes, classes = (None,) * 3, (None,) * 2
    inputs = [(step, _INT64, ()), (proceeds, _BOOL, ()), (left, _BOOL, boxes)]
    outputs = [(proceeds_on, _BOOL, ()), (rest, _BOOL, boxes), (number, _INT64, classes), (valid, _BOOL, classes)]
    return op.graph("step", inside.nodes, inputs, outputs)
