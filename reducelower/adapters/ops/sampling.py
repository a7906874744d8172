"""GridSample where the target has less of it or none; not text, since its filters are planned for any rank.

All taps of the filter are one gather, and their weights a polynomial in how far the place lies beyond an element.

Source: the page of GridSample (16, 20).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.registry import ItsBody, Outcome, lowers, raises

_ALPHA = -0.75  # the cubic coefficient that the operator's page names

_FILTERS: Mapping[str, tuple[Sequence[int], Sequence[Sequence[float]]]] = {
    "nearest": ([0], []),
    "linear": ([0, 1], [[1, -1], [0, 1]]),
    "cubic": (
        [-1, 0, 1, 2],
        [
            [0, _ALPHA, -2 * _ALPHA, _ALPHA],
            [1, 0, -(_ALPHA + 3), _ALPHA + 2],
            [0, -_ALPHA, 2 * _ALPHA + 3, -(_ALPHA + 2)],
            [0, 0, _ALPHA, -_ALPHA],
        ],
    ),
}
"""The taps along an axis, counted from the element before the place, and what each weighs: the coefficients of a
polynomial in how far the place lies beyond that element, the constant first. The cubic one is Keys' kernel,
https://ieeexplore.ieee.org/document/1163711."""

_FARTHEST = 2.0**62
"""Places beyond this, and those that are no number, are the first one to onnxruntime's kernel (1.32.0)."""


@expresses("GridSample", opset=15)
def _written_out(op: Writer) -> list[NodeProto]:
    """The sum over all taps of the weight times the element there."""
    return _Sampler(op).nodes()


class _Sampler:
    """Writes one GridSample node out.

    All axes and all taps are computed at once, in tensors of (batch, axes, taps, grid sizes ...), in which the
    innermost axis comes first, as in a coordinate. Nothing is reshaped to a computed shape, so any size may be zero.
    Constants have a value per axis: onnxruntime is many times slower with scalars here.

    Places are brought near the data before their elements are looked for, and the data get a border wide enough for
    all taps of such a place. Only the cubic filter has taps that the padding mode brings inside one by one.
    """

    def __init__(self, op: Writer) -> None:
        self.op = op
        mode = op.attribute("mode", "linear")
        self.mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
        self.padding = op.attribute("padding_mode", "zeros")
        self.aligned = bool(op.attribute("align_corners", 0))
        self.count = op.rank(0) - 2
        # Coordinates of halves are too coarse to tell elements apart.
        self.wide = TensorProto.DOUBLE if op.element_type(0) == TensorProto.DOUBLE else TensorProto.FLOAT
        shape = op.shape(0)
        self.batch = None if shape is None else shape[0]
        self.sizes = [size or 0 for size in shape[1:]] if shape is not None and all(shape[1:]) else None
        """Channels and spatial sizes, if all are known and none is zero."""
        self.steps = _FILTERS[self.mode][0]
        self.by_tap = self.mode == "cubic" and self.padding != "zeros"
        """Whether taps are brought inside one by one."""
        reach = self.steps[-1] - self.steps[0]
        self.edge = 0.5 if self.padding == "reflection" and self.mode == "linear" else 0
        """How far beyond the outermost elements a place may stay: up to where it was folded."""
        if self.padding == "zeros":
            self.border = (reach + 1, reach + 1)
        else:
            self.border = (0, 0) if self.by_tap else (1 if self.edge else 0, reach)
        """How many elements are put before and behind the data along each axis: zeros, or the outermost ones again."""

    def nodes(self) -> list[NodeProto]:
        op, count = self.op, self.count
        data = op.cast(op.input(0), op.element_type(0), self.wide, "data")
        grid = op.cast(op.input(1), op.element_type(1), self.wide, "grid")
        self.lengths = self._lengths(data)
        grid = op.add("Transpose", grid, tail="coordinates", perm=[0, count + 1, *range(1, count + 1)])
        place = self._place(op.add("Unsqueeze", grid, op.integers([2], "taps"), tail="column"))
        if self.mode == "nearest":
            place = op.add("Round", place, tail="nearest")
        if not self.by_tap:
            place = self._within(place)
        first = op.add("Floor", place, tail="first") if self.mode != "nearest" else place
        found = self._gathered(data, first)
        taps = op.integers([2], "taps")
        if self.mode == "nearest":
            result = op.add("Squeeze", found, taps, tail="result")
        else:
            weights = self._weights(op.add("Sub", place, first, tail="rest"))
            result = op.add("ReduceSum", op.add("Mul", found, weights, tail="terms"), taps, tail="result", keepdims=0)
        return op.yields_cast(result, self.wide, op.element_type(0))

    def _column(self, values: Any, tail: str, element_type: int = 0) -> str:
        """A constant of a value per axis, or per axis and tap."""
        table = np.asarray(values)
        table = np.broadcast_to(table, (self.count,)) if table.ndim == 0 else table
        shape = (*table.shape, *[1] * (self.count + 2 - table.ndim))
        return self.op.constant(table.reshape(shape), element_type or self.wide, tail)

    def _lengths(self, data: str) -> str:
        """The spatial sizes, the innermost first; computed unless they are known."""
        op = self.op
        if self.sizes is not None:
            return ""
        ends = (op.integers([end], "bound") for end in (-1, 1, 0, -1))
        sizes = op.add("Slice", op.add("Shape", data), *ends, tail="sizes")
        sizes = op.add("Cast", sizes, tail="lengths", to=self.wide)
        return op.add("Reshape", sizes, op.integers([-1] + [1] * (self.count + 1), "column"), tail="lengths")

    def _length(self, added: float, factor: float = 1) -> str:
        """Every size plus a number, times a factor."""
        if self.sizes is not None:
            return self._column((np.array(self.sizes[:0:-1], np.float64) + added) * factor, "lengths")
        length = self._with("Add", self.lengths, added, "lengths") if added else self.lengths
        return length if factor == 1 else self._with("Mul", length, factor, "lengths")

    def _with(self, op_type: str, name: str, number: float, tail: str) -> str:
        """A calculation with a number for all axes."""
        return self.op.add(op_type, name, self._column(number, tail), tail=tail)

    def _place(self, grid: str) -> str:
        """Where coordinates between -1 and 1 lie, counted in elements; in the order of onnxruntime's kernel."""
        op = self.op
        above = self._with("Add", grid, 1.0, "above")
        if self.aligned:
            place = op.add("Mul", above, self._length(-1, 0.5), tail="place")
        else:
            place = self._with("Sub", op.add("Mul", above, self._length(0, 0.5), tail="spread"), 0.5, "place")
        is_near = self._with("Less", op.add("Abs", place, tail="far"), _FARTHEST, "is_near")
        return op.add("Where", is_near, place, self._column(0.0 if self.aligned else -0.5, "start"), tail="place")

    def _within(self, place: str) -> str:
        """Where a place outside stands for one inside; with zeros outside, for one just as far that it gets zeros."""
        if self.padding == "reflection":
            place = self._reflected(place)
        low, high = (-self.edge, self.edge - 1)
        if self.padding == "zeros":
            low, high = -1 - self.steps[-1], -self.steps[0]
        return self.op.add("Min", self._with("Max", place, low, "from_first"), self._length(high), tail="inside")

    def _reflected(self, place: str) -> str:
        """Fold the axes at their ends: at the outermost elements if corners are aligned, else at their outer edges."""
        op = self.op
        start, taken = (0.0, 1.0) if self.aligned else (-0.5, 0.0)
        span = self._length(-taken)
        if self.aligned:
            # A single element has no span to fold.
            span = self._with("Max", span, 1.0, "span")
        period = self._with("Mul", span, 2.0, "period")
        far = op.add("Abs", self._with("Sub", place, start, "offset"), tail="far")
        times = op.add("Floor", op.add("Div", far, period, tail="folds"), tail="times")
        left = op.add("Sub", far, op.add("Mul", times, period, tail="whole"), tail="left")
        folded = op.add("Min", left, op.add("Sub", period, left, tail="back"), tail="folded")
        return self._with("Add", folded, start, "reflected")

    def _combined(self, by_tap: Sequence[float]) -> NDArray[np.float64]:
        """For every axis and combination of taps, the number of the axis's tap."""
        return np.array(list(itertools.product(by_tap, repeat=self.count))).T

    def _weights(self, rest: str) -> str:
        """What the elements at all taps weigh, by how far places lie beyond the first: the product over all axes."""
        op = self.op
        *coefficients, weights = (
            self._column(self._combined(by_tap), "coefficients") for by_tap in zip(*_FILTERS[self.mode][1], strict=True)
        )
        for coefficient in reversed(coefficients):
            weights = op.add("Add", op.add("Mul", rest, weights, tail="power"), coefficient, tail="weights")
        if self.count == 1:
            return weights
        return op.add("ReduceProd", weights, tail="weight", axes=[1], keepdims=1)

    def _gathered(self, data: str, first: str) -> str:
        """The elements at all taps behind the first, in tensors of (batch, channels, taps, grid sizes ...)."""
        op, count = self.op, self.count
        if any(self.border):
            border = [side for end in self.border for side in (0, 0, *[end] * count)]
            mode = "constant" if self.padding == "zeros" else "edge"
            data = op.add("Pad", data, op.integers(border, "border"), tail="padded", mode=mode)
        spatial = list(range(2, count + 2))
        if self.sizes is not None and count > 1:
            last = op.add("Transpose", data, tail="channels_last", perm=[0, *spatial, 1])
            found = self._by_number(last, first, self.sizes)
        else:
            last = op.add("Transpose", data, tail="channels_last", perm=[0, *reversed(spatial), 1])
            taps = op.add("Cast", self._taps(first), tail="indices", to=TensorProto.INT64)
            index = op.add("Transpose", taps, tail="index", perm=[0, *range(2, count + 3), 1])
            found = op.add("GatherND", last, index, tail="found", batch_dims=1)
        # Weights are applied with the channels first: onnxruntime is slow where a weight is for a few elements.
        return op.add("Transpose", found, tail="channels_first", perm=[0, count + 2, *range(1, count + 2)])

    def _taps(self, first: str) -> str:
        """The elements at all taps, per axis."""
        steps = self._combined(self.steps)
        if not self.by_tap:
            steps = steps + self.border[0]
        taps = self.op.add("Add", first, self._column(steps, "steps"), tail="taps") if steps.any() else first
        return self._within(taps) if self.by_tap else taps

    def _by_number(self, data: str, first: str, sizes: Sequence[int]) -> str:
        """The elements, with the channels last, where the spatial axes are one, in which an index is one number.

        That is faster, but needs the sizes. Where the batch is known as well, it belongs to that one axis.
        """
        op = self.op
        lengths = [size + sum(self.border) for size in sizes[:0:-1]]
        strides, places = np.cumprod([1, *lengths[:-1]]), int(np.prod(lengths))
        offsets = np.zeros((1, 1), np.int64)
        if not self.by_tap:
            offsets = offsets + strides @ (self._combined(self.steps).astype(np.int64) + self.border[0])
        if self.batch is not None:
            offsets = offsets + places * np.arange(self.batch).reshape(-1, 1)
        # Whole numbers are exact in the type of the places, and cheaper, until they are large.
        is_exact = places * (self.batch or 1) < 1 << 24
        counted = self.wide if is_exact else TensorProto.INT64
        taps = op.cast(self._taps(first) if self.by_tap else first, self.wide, counted, "indices")
        taps = op.add("Mul", taps, self._column(strides, "strides", counted), tail="strides")
        number = op.add("ReduceSum", taps, op.integers([1], "axes"), tail="number", keepdims=0)
        if offsets.any():
            table = op.constant(offsets.reshape(*offsets.shape, *[1] * self.count), counted, "offsets")
            number = op.add("Add", number, table, tail="index")
        number = op.cast(number, counted, TensorProto.INT64, "index")
        if self.batch is not None:
            flat = op.add("Reshape", data, op.integers([self.batch * places, sizes[0]], "flat"), tail="flat")
            return op.add("Gather", flat, number, tail="found", axis=0)
        flat = op.add("Reshape", data, op.integers([0, places, sizes[0]], "flat"), tail="flat")
        number = op.add("Unsqueeze", number, op.integers([self.count + 2], "numbers"), tail="numbers")
        return op.add("GatherND", flat, number, tail="found", batch_dims=1)


_OLD_MODES = {"linear": "bilinear", "cubic": "bicubic"}
_NEW_MODES = {old: new for new, old in _OLD_MODES.items()}


@lowers("GridSample", 20)
def _lower_grid_sample(op: Writer) -> Outcome | ItsBody:
    """Modes had the names of their kind for images, which is all there was."""
    if op.rank(0) != 4:
        return ItsBody("it samples data that are no images", "opset 20 is the oldest that does")
    mode = op.attribute("mode", "linear")
    op.set("mode", _OLD_MODES.get(mode, mode))
    return None


@raises("GridSample", 20)
def _raise_grid_sample(op: Writer) -> None:
    mode = op.attribute("mode", "bilinear")
    op.set("mode", _NEW_MODES.get(mode, mode))
