"""AffineGrid and GridSample where the target has less of them or none.

AffineGrid is the grid of the identity, which is constant, times the given matrices. The schema's body is no use: it
squeezes away a batch of one, and counts with vectors where Range takes scalars.

In GridSample every tap of the filter is a gather.

Sources: the pages of AffineGrid (20), GridSample (16, 20).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.ops.run_time_interpolation import clamped, cubic_weights, linear_weights
from reducelower.adapters.registry import Outcome, lowers, raises
from reducelower.errors import RefusedError

__all__ = ["written_out"]

_LARGEST_GRID = 1 << 20


@expresses("AffineGrid", opset=13)
def _affine_grid(op: Writer) -> list[NodeProto]:
    """(..., x, y, 1) of every place times the transposed matrix."""
    element_type = op.element_type(0)
    aligned = bool(op.attribute("align_corners", 0))
    size = op.constant_input(1)
    if size is not None and np.prod(size[2:].astype(np.int64)) * len(size) <= _LARGEST_GRID:
        batch, _, *spatial = size.astype(np.int64).tolist()
        rows = op.constant(_rows(spatial, aligned), element_type, "base_grid")
        shape = op.integers([batch, *spatial, len(spatial)], "grid_shape")
        op.scope.release(op.input(1))
    else:
        rows, shape = _rows_at_run_time(op, element_type, aligned)
    turned = op.add("Transpose", op.input(0), perm=[0, 2, 1])
    return op.yields("Reshape", op.add("MatMul", rows, turned), shape)


def _rows(spatial: list[int], aligned: bool) -> NDArray[np.float64]:
    places = np.meshgrid(*(_places(length, aligned) for length in spatial), indexing="ij")
    # The innermost axis comes first in a coordinate.
    return np.stack([*(axis.reshape(-1) for axis in reversed(places)), np.ones(places[0].size)], axis=1)


def _rows_at_run_time(op: Writer, element_type: int, aligned: bool) -> tuple[str, str]:
    """The same for a size that is computed: its rows, and the shape of the result."""
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
    """Where the elements of an axis lie between -1 and 1: from end to end, or their middles."""
    if aligned:
        return np.arange(length) * 2 / max(length - 1, 1) - 1
    return (2 * np.arange(length) + 1) / length - 1


_INT64 = TensorProto.INT64
_ALPHA = -0.75  # the cubic coefficient that the operator's page names


def written_out(op: Writer) -> list[NodeProto]:
    """The sum over all taps of the weight times the element there, for opset 15."""
    return _Sampler(op).nodes()


expresses("GridSample", opset=15)(written_out)


@dataclass(frozen=True)
class _Tap:
    """One tap along one axis: the index of the element, as a number within the axis, and its weight if not one."""

    index: str
    weight: str


class _Sampler:
    """Writes one GridSample node out."""

    def __init__(self, op: Writer) -> None:
        self.body = op
        mode = op.attribute("mode", "linear")
        self.mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
        self.padding = op.attribute("padding_mode", "zeros")
        self.aligned = bool(op.attribute("align_corners", 0))
        self.count = op.rank(0) - 2
        self.data_type = op.element_type(0)
        # Coordinates of halves are too coarse to tell elements apart.
        self.wide = TensorProto.DOUBLE if self.data_type == TensorProto.DOUBLE else TensorProto.FLOAT

    def nodes(self) -> list[NodeProto]:
        body = self.body
        data, grid = body.input(0), body.input(1)
        if body.scope.element_type(grid) != self.wide:
            grid = body.add("Cast", grid, tail="grid", to=self.wide)
        data = body.cast(data, self.data_type, self.wide, "data")
        shape, grid_shape = body.add("Shape", data), body.add("Shape", grid, tail="grid_shape")
        flat = self._reshaped(data, self._sliced(shape, 0, 2, "channels"), "flat")
        places = self._reshaped(grid, self._sliced(grid_shape, 0, 1, "batch"), "places", self.count)
        taps, lengths = [], []
        for axis in range(self.count):
            length = body.add("Gather", shape, self.body.integers(axis + 2, "axis"), tail="length", axis=0)
            lengths.append(body.add("Cast", length, tail="size", to=self.wide))
            # The innermost axis comes first in a coordinate.
            which = self.body.integers([self.count - 1 - axis], "which")
            taps.append(self._taps(body.add("Gather", places, which, tail="place", axis=2), lengths[-1]))
        total = ""
        for combined in itertools.product(*taps):
            term = self._term(flat, combined, lengths)
            total = body.add("Add", total, term, tail="sum") if total else term
        whole = body.add(
            "Concat", self._sliced(shape, 0, 2, "channels"), self._sliced(grid_shape, 1, self.count + 1, "spatial"),
            tail="result_shape", axis=0,
        )  # fmt: skip
        return body.yields_cast(body.add("Reshape", total, whole, tail="wide"), self.wide, self.data_type)

    def _number(self, value: float) -> str:
        return self.body.constant(value, self.wide, "number")

    def _sliced(self, shape: str, start: int, end: int, tail: str) -> str:
        return self.body.add(
            "Slice", shape, self.body.integers([start], "start"), self.body.integers([end], "end"), tail=tail
        )

    def _reshaped(self, name: str, leading: str, tail: str, last: int = 0) -> str:
        """Keep the leading sizes, and the last one if given; the others become one."""
        trailing = self.body.integers([-1, last] if last else [-1], "others")
        shape = self.body.add("Concat", leading, trailing, tail=f"{tail}_shape", axis=0)
        return self.body.add("Reshape", name, shape, tail=tail)

    def _calculated(self, op_type: str, left: str, right: str | float, tail: str) -> str:
        number = right if isinstance(right, str) else self._number(right)
        return self.body.add(op_type, left, number, tail=tail)

    def _taps(self, place: str, length: str) -> list[_Tap]:
        """The taps along one axis for places between -1 and 1."""
        body = self.body
        above = self._calculated("Add", place, 1.0, "above")
        if self.aligned:
            span = self._calculated("Sub", length, 1.0, "span")
            place = self._calculated("Div", body.add("Mul", above, span, tail="twice"), 2.0, "coordinate")
        else:
            twice = self._calculated("Sub", body.add("Mul", above, length, tail="spread"), 1.0, "twice")
            place = self._calculated("Div", twice, 2.0, "coordinate")
        if self.mode == "nearest":
            return [_Tap(self._within(body.add("Round", place, tail="nearest"), length), "")]
        if self.mode == "linear":
            # The cubic filter has taps of its own outside, which runtimes bring inside one by one.
            place = self._within(place, length)
        first = body.add("Floor", place, tail="first")
        rest = body.add("Sub", place, first, tail="rest")
        if self.mode == "linear":
            weights = linear_weights(body, rest, self._number)
        else:
            weights = cubic_weights(body, rest, _ALPHA, self._number)
        return [_Tap(self._calculated("Add", first, float(step), "tap"), weight) for step, weight in weights.items()]

    def _within(self, place: str, length: str) -> str:
        """Where a place outside stands for one inside; with zeros outside it stays where it is."""
        if self.padding == "border":
            return clamped(self.body, place, length, self._number)
        return self._reflected(place, length) if self.padding == "reflection" else place

    def _reflected(self, place: str, length: str) -> str:
        """Fold the axis at its ends: at the outermost elements if corners are aligned, else at their outer edges."""
        body = self.body
        start, taken = (0.0, 1.0) if self.aligned else (-0.5, 0.0)
        span = self._calculated("Sub", length, taken, "span")
        if self.aligned:
            # A single element has no span to fold.
            span = self._calculated("Max", span, 1.0, "span_1")
        period = self._calculated("Mul", span, 2.0, "period")
        far = body.add("Abs", self._calculated("Sub", place, start, "offset"), tail="far")
        times = body.add("Floor", body.add("Div", far, period, tail="folds"), tail="times")
        left = body.add("Sub", far, body.add("Mul", times, period, tail="whole"), tail="left")
        folded = body.add("Min", left, body.add("Sub", period, left, tail="back"), tail="folded")
        return self._calculated("Add", folded, start, "reflected")

    def _term(self, flat: str, taps: tuple[_Tap, ...], lengths: list[str]) -> str:
        """The elements at one combination of taps, times their weight."""
        body = self.body
        index, weight = "", ""
        for tap, length in zip(taps, lengths, strict=True):
            place = self._reflected(tap.index, length) if self.padding == "reflection" else tap.index
            inside = clamped(self.body, place, length, self._number)
            factors = [tap.weight] if tap.weight else []
            if self.padding == "zeros":
                away = body.add("Abs", body.add("Sub", tap.index, inside, tail="off"), tail="away")
                known = body.add("Less", away, self._number(0.5), tail="is_inside")
                factors.append(body.add("Cast", known, tail="mask", to=self.wide))
            for factor in factors:
                weight = body.add("Mul", weight, factor, tail="weights") if weight else factor
            whole = body.add("Cast", inside, tail="index", to=_INT64)
            if index:
                size = body.add("Cast", length, tail="stride", to=_INT64)
                whole = body.add("Add", body.add("Mul", index, size, tail="row"), whole, tail="position")
            index = whole
        found = self._gathered(flat, index)
        if not weight:
            return found
        return body.add("Mul", found, self._turned(weight), tail="term")

    def _turned(self, name: str) -> str:
        """(batch, places, 1) as (batch, 1, places)."""
        return self.body.add("Transpose", name, tail="turned", perm=[0, 2, 1])

    def _gathered(self, flat: str, index: str) -> str:
        body = self.body
        turned = self._turned(index)
        places = self._sliced(body.add("Shape", turned, tail="index_shape"), 2, 3, "places")
        channels = self._sliced(body.add("Shape", flat, tail="flat_shape"), 0, 2, "channels")
        shape = body.add("Concat", channels, places, tail="found_shape", axis=0)
        return body.add("GatherElements", flat, body.add("Expand", turned, shape, tail="indices"), tail="found", axis=2)


_OLD_MODES = {"linear": "bilinear", "cubic": "bicubic"}
_NEW_MODES = {old: new for new, old in _OLD_MODES.items()}


@lowers("GridSample", 20)
def _lower_grid_sample(op: Writer) -> Outcome:
    """Modes had the names of their kind for images, which is all there was."""
    if op.rank(0) != 4:
        return written_out(op)
    mode = op.attribute("mode", "linear")
    op.set("mode", _OLD_MODES.get(mode, mode))
    return None


@raises("GridSample", 20)
def _raise_grid_sample(op: Writer) -> None:
    mode = op.attribute("mode", "bilinear")
    op.set("mode", _NEW_MODES.get(mode, mode))
