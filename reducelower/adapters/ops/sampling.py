"""GridSample for targets that lack it, or its newer version; not text, since the filter depends on the rank.

One gather takes the elements at all taps of the filter. The weight of a tap is a polynomial in the distance between the
place and the element before it.

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
from reducelower.adapters.rules import rule

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
"""The taps along an axis, counted from the element before the place, with polynomials for their weights in the distance
from that element to the place, the constant first. Cubic is Keys' kernel, https://ieeexplore.ieee.org/document/1163711."""

_FARTHEST = 2.0**62
"""onnxruntime's kernel (1.32.0) replaces places beyond this, and NaN, by the first place."""


@rule("GridSample", "absent", opset=15)
def _written_out(op: Writer) -> list[NodeProto]:
    """Add the elements at all taps, times their weights."""
    return _Sampler(op).nodes()


class _Sampler:
    """Expresses one GridSample node by other operators.

    All axes and all taps are computed at once, in tensors of (batch, axes, taps, grid sizes ...), in which the
    innermost axis comes first, as in a coordinate. Nothing is reshaped to a computed shape, so any size may be zero.
    Constants have a value per axis: onnxruntime is many times slower with scalars here.

    Places far outside are moved near the data first, and the data get a border that is wide enough for all taps of such
    a place. Only taps of the cubic filter may have to be moved inside one by one, by the padding mode.
    """

    def __init__(self, op: Writer) -> None:
        self.op = op
        mode = op.attribute("mode", "linear")
        self.mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
        self.padding = op.attribute("padding_mode", "zeros")
        self.aligned = bool(op.attribute("align_corners", 0))
        self.count = op.rank(0) - 2
        # 16-bit coordinates are too coarse to tell elements apart.
        self.wide = TensorProto.DOUBLE if op.element_type(0) == TensorProto.DOUBLE else TensorProto.FLOAT
        shape = op.shape(0)
        self.batch = None if shape is None else shape[0]
        self.sizes = [size or 0 for size in shape[1:]] if shape is not None and all(shape[1:]) else None
        """Channels and spatial sizes, if all are known and none is zero."""
        self.steps = _FILTERS[self.mode][0]
        self.by_tap = self.mode == "cubic" and self.padding != "zeros"
        """Whether taps are moved inside one by one."""
        reach = self.steps[-1] - self.steps[0]
        self.edge = 0.5 if self.padding == "reflection" and self.mode == "linear" else 0
        """How far beyond the outermost elements a place may lie: up to where it was reflected."""
        if self.padding == "zeros":
            self.border = (reach + 1, reach + 1)
        else:
            self.border = (0, 0) if self.by_tap else (1 if self.edge else 0, reach)
        """How many elements to pad before and behind the data along each axis: zeros, or copies of the edge."""

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
        elements = self._gathered(data, first)
        taps = op.integers([2], "taps")
        if self.mode == "nearest":
            result = op.add("Squeeze", elements, taps, tail="result")
        else:
            weights = self._weights(op.add("Sub", place, first, tail="rest"))
            terms = op.add("Mul", elements, weights, tail="terms")
            result = op.add("ReduceSum", terms, taps, tail="result", keepdims=0)
        return op.yields_cast(result, self.wide, op.element_type(0))

    def _column(self, values: Any, tail: str, element_type: int = 0) -> str:
        """A constant with a value per axis, or per axis and tap."""
        table = np.asarray(values)
        table = np.broadcast_to(table, (self.count,)) if table.ndim == 0 else table
        shape = (*table.shape, *[1] * (self.count + 2 - table.ndim))
        return self.op.constant(table.reshape(shape), element_type or self.wide, tail)

    def _lengths(self, data: str) -> str:
        """The computed spatial sizes, the innermost first; an empty name if they are known."""
        op = self.op
        if self.sizes is not None:
            return ""
        ends = (op.integers([end], "bound") for end in (-1, 1, 0, -1))
        sizes = op.add("Slice", op.add("Shape", data), *ends, tail="sizes")
        sizes = op.add("Cast", sizes, tail="lengths", to=self.wide)
        return op.add("Reshape", sizes, op.integers([-1] + [1] * (self.count + 1), "column"), tail="lengths")

    def _length(self, added: float, factor: float = 1) -> str:
        """The spatial sizes plus a number, times a factor."""
        if self.sizes is not None:
            return self._column((np.array(self.sizes[:0:-1], np.float64) + added) * factor, "lengths")
        length = self._with("Add", self.lengths, added, "lengths") if added else self.lengths
        return length if factor == 1 else self._with("Mul", length, factor, "lengths")

    def _with(self, op_type: str, name: str, number: float, tail: str) -> str:
        """Apply an operator to a value and a number."""
        return self.op.add(op_type, name, self._column(number, tail), tail=tail)

    def _place(self, grid: str) -> str:
        """The places of coordinates from -1 to 1, counted in elements, by the arithmetic of onnxruntime's kernel."""
        op = self.op
        above = self._with("Add", grid, 1.0, "above")
        if self.aligned:
            place = op.add("Mul", above, self._length(-1, 0.5), tail="place")
        else:
            place = self._with("Sub", op.add("Mul", above, self._length(0, 0.5), tail="spread"), 0.5, "place")
        is_near = self._with("Less", op.add("Abs", place, tail="far"), _FARTHEST, "is_near")
        return op.add("Where", is_near, place, self._column(0.0 if self.aligned else -0.5, "start"), tail="place")

    def _within(self, place: str) -> str:
        """Move places inside by the padding mode; with zeros outside, only so near that their taps remain zero."""
        if self.padding == "reflection":
            place = self._reflected(place)
        low, high = (-self.edge, self.edge - 1)
        if self.padding == "zeros":
            low, high = -1 - self.steps[-1], -self.steps[0]
        return self.op.add("Min", self._with("Max", place, low, "from_first"), self._length(high), tail="inside")

    def _reflected(self, place: str) -> str:
        """Reflect places at the outermost elements if corners are aligned, else at the outer edges of these."""
        op = self.op
        start, excess = (0.0, 1.0) if self.aligned else (-0.5, 0.0)
        span = self._length(-excess)
        if self.aligned:
            # The span of a single element is zero.
            span = self._with("Max", span, 1.0, "span")
        period = self._with("Mul", span, 2.0, "period")
        far = op.add("Abs", self._with("Sub", place, start, "offset"), tail="far")
        count = op.add("Floor", op.add("Div", far, period, tail="folds"), tail="times")
        remainder = op.add("Sub", far, op.add("Mul", count, period, tail="whole"), tail="left")
        folded = op.add("Min", remainder, op.add("Sub", period, remainder, tail="back"), tail="folded")
        return self._with("Add", folded, start, "reflected")

    def _combined(self, by_tap: Sequence[float]) -> NDArray[np.float64]:
        """The value of each axis's tap, for every axis and combination of taps."""
        return np.array(list(itertools.product(by_tap, repeat=self.count))).T

    def _weights(self, rest: str) -> str:
        """The weights of all taps, by the distance of places from the first: the product over all axes."""
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
        """The elements at all taps, counted from the first: (batch, channels, taps, grid sizes ...)."""
        op, count = self.op, self.count
        if any(self.border):
            border = [side for end in self.border for side in (0, 0, *[end] * count)]
            mode = "constant" if self.padding == "zeros" else "edge"
            data = op.add("Pad", data, op.integers(border, "border"), tail="padded", mode=mode)
        spatial = list(range(2, count + 2))
        if self.sizes is not None and count > 1:
            last = op.add("Transpose", data, tail="channels_last", perm=[0, *spatial, 1])
            elements = self._by_flat_index(last, first, self.sizes)
        else:
            last = op.add("Transpose", data, tail="channels_last", perm=[0, *reversed(spatial), 1])
            taps = op.add("Cast", self._taps(first), tail="indices", to=TensorProto.INT64)
            index = op.add("Transpose", taps, tail="index", perm=[0, *range(2, count + 3), 1])
            elements = op.add("GatherND", last, index, tail="found", batch_dims=1)
        # The weights follow with the channels first: onnxruntime is slow if a weight is for few elements.
        return op.add("Transpose", elements, tail="channels_first", perm=[0, count + 2, *range(1, count + 2)])

    def _taps(self, first: str) -> str:
        """The positions of all taps, per axis."""
        steps = self._combined(self.steps)
        if not self.by_tap:
            steps = steps + self.border[0]
        taps = self.op.add("Add", first, self._column(steps, "steps"), tail="taps") if steps.any() else first
        return self._within(taps) if self.by_tap else taps

    def _by_flat_index(self, data: str, first: str, sizes: Sequence[int]) -> str:
        """The elements, with the channels last, gathered from a single axis for all spatial axes.

        That is faster, but needs the sizes. If the batch size is known as well, that axis also covers the batch.
        """
        op = self.op
        lengths = [size + sum(self.border) for size in sizes[:0:-1]]
        strides, places = np.cumprod([1, *lengths[:-1]]), int(np.prod(lengths))
        offsets = np.zeros((1, 1), np.int64)
        if not self.by_tap:
            offsets = offsets + strides @ (self._combined(self.steps).astype(np.int64) + self.border[0])
        if self.batch is not None:
            offsets = offsets + places * np.arange(self.batch).reshape(-1, 1)
        # Integers are exact in the type of the places until they are large, and computing them there is cheaper.
        is_exact = places * (self.batch or 1) < 1 << 24
        index_type = self.wide if is_exact else TensorProto.INT64
        taps = op.cast(self._taps(first) if self.by_tap else first, self.wide, index_type, "indices")
        taps = op.add("Mul", taps, self._column(strides, "strides", index_type), tail="strides")
        index = op.add("ReduceSum", taps, op.integers([1], "axes"), tail="number", keepdims=0)
        if offsets.any():
            table = op.constant(offsets.reshape(*offsets.shape, *[1] * self.count), index_type, "offsets")
            index = op.add("Add", index, table, tail="index")
        index = op.cast(index, index_type, TensorProto.INT64, "index")
        if self.batch is not None:
            flat = op.add("Reshape", data, op.integers([self.batch * places, sizes[0]], "flat"), tail="flat")
            return op.add("Gather", flat, index, tail="found", axis=0)
        flat = op.add("Reshape", data, op.integers([0, places, sizes[0]], "flat"), tail="flat")
        index = op.add("Unsqueeze", index, op.integers([self.count + 2], "numbers"), tail="numbers")
        return op.add("GatherND", flat, index, tail="found", batch_dims=1)
