"""Resize by Gather and MatMul, for known sizes; not text, since numpy computes the weights.

Each axis takes a Gather in mode nearest, else a MatMul. This serves opset versions whose Resize or Upsample lacks the
mode or the coordinate transformation. Output coordinates are computed as the operator's page defines them, and where
rounding decides which element is nearest, in float32, as runtimes do.

Source: the page of Resize (11 to 19).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.errors import RefusedError
from reducelower.model.attributes import value_of
from reducelower.model.numbers import FIRST_FLOATS

__all__ = ["Axis", "interpolate"]

Floats: TypeAlias = Any
"""An array of float32; numpy's own types lose that in arithmetic with scalars."""


@dataclass(frozen=True)
class Axis:
    """An axis whose size changes: its number, its sizes before and after, and the scale of coordinates."""

    place: int
    before: int
    after: int
    scale: float


def _half_pixel(x: Floats, axis: Axis) -> Floats:
    return (x + np.float32(0.5)) / np.float32(axis.scale) - np.float32(0.5)


def _align_corners(x: Floats, axis: Axis) -> Floats:
    return x * np.float32(axis.before - 1) / np.float32(max(axis.after - 1, 1))


_COORDINATES: Mapping[str, Callable[[Floats, Axis], Floats]] = {
    "half_pixel": _half_pixel,
    "pytorch_half_pixel": lambda x, axis: _half_pixel(x, axis) if axis.after > 1 else np.zeros_like(x),
    "align_corners": _align_corners,
    "asymmetric": lambda x, axis: x / np.float32(axis.scale),
    "tf_half_pixel_for_nn": lambda x, axis: (x + np.float32(0.5)) / np.float32(axis.scale),
}

_NEAREST: Mapping[str, Callable[[Floats], Floats]] = {
    "round_prefer_floor": lambda x: np.ceil(x - np.float32(0.5)),
    "round_prefer_ceil": lambda x: np.floor(x + np.float32(0.5)),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _widened(op: Writer) -> tuple[str, int]:
    """The data in the element type to compute in, and that type; interpolated integers are refused."""
    mode, element_type = op.attribute("mode", "nearest"), op.element_type(0)
    if mode != "nearest" and element_type not in FIRST_FLOATS:
        raise RefusedError(f"it interpolates integers with mode={mode}, which cannot be written out exactly")
    wide = TensorProto.FLOAT if mode != "nearest" and element_type == TensorProto.FLOAT16 else element_type
    return op.cast(op.input(0), element_type, wide, "wide"), wide


def interpolate(op: Writer, axes: list[Axis]) -> list[NodeProto]:
    """The nodes for opset 9 that do what a Resize of opset 11 or later does along axes of known size."""
    mode = op.attribute("mode", "nearest")
    transformation = op.attribute("coordinate_transformation_mode", "half_pixel")
    coordinates = _COORDINATES.get(transformation)
    if coordinates is None:
        raise RefusedError(f"it uses {transformation}, which opset {op.scope.target_opset} does not have")
    data, wide = _widened(op)
    rank = op.rank(0)
    for axis in axes:
        if axis.after < 0:
            raise RefusedError(f"it asks for the size {axis.after} along axis {axis.place}", "correct the model")
        if not axis.before:
            if axis.after:
                raise RefusedError(f"axis {axis.place} has no elements, its result has {axis.after}", "feed it some")
            continue  # an empty axis stays empty and has no coordinates
        op.make_room(*((axis.after,) if mode == "nearest" else (axis.before, axis.after)))
        places = coordinates(np.arange(axis.after, dtype=np.float32), axis)
        if mode == "nearest":
            exact = places == coordinates(np.arange(axis.after, dtype=np.float64), axis)
            data = _gather(op, data, axis, places, exact)
        else:
            matrix = _matrix(op.node, mode, axis, places)
            data = _multiply(op, data, matrix, axis, rank, wide)
    return op.yields_cast(data, wide, op.element_type(0))


def _gather(op: Writer, data: str, axis: Axis, places: Floats, exact: Floats) -> str:
    rounding = _NEAREST[op.attribute("nearest_mode", "round_prefer_floor")]

    def nearest(coordinates: Floats) -> Floats:
        return np.clip(rounding(coordinates), 0, axis.before - 1).astype(np.int64)

    # A runtime may be off by some units in the last place, unless the coordinate is exact.
    slack = np.where(exact, 0, 1e-5 * np.maximum(1, np.abs(places)))
    indices = nearest(places)
    if not np.array_equal(nearest(places - slack), nearest(places + slack)):
        raise RefusedError(
            f"the last bit of a coordinate decides which element of axis {axis.place} it takes",
            "choose sizes that are multiples of each other",
        )
    return op.add("Gather", data, op.integers(indices, "nearest"), tail="resized", axis=axis.place)


def _matrix(node: NodeProto, mode: str, axis: Axis, places: Floats) -> NDArray[np.float64]:
    """The weight of every element (column) in every result (row).

    With antialias=1 and a scale below 1, the kernel is widened by that scale.
    """
    matrix = np.zeros((axis.after, axis.before))
    antialias, exclude = (bool(value_of(node, name, 0)) for name in ("antialias", "exclude_outside"))
    narrow = min(axis.scale, 1.0) if antialias else 1.0
    reach = math.ceil((1 if mode == "linear" else 2) / narrow)
    coordinates = places.astype(np.float64)
    coefficient = float(value_of(node, "cubic_coeff_a", -0.75))
    for tap in range(1 - reach, reach + 1):
        index = (np.floor(coordinates) + tap).astype(np.int64)
        distance = np.abs(index - coordinates) * narrow
        weights = np.maximum(1 - distance, 0) if mode == "linear" else _cubic(distance, coefficient)
        inside = (index >= 0) & (index < axis.before)
        counted = np.where(inside, weights, 0.0) if exclude else weights
        np.add.at(matrix, (np.arange(axis.after), np.clip(index, 0, axis.before - 1)), counted)
    return matrix / matrix.sum(axis=1, keepdims=True) if exclude or antialias else matrix


def _cubic(distance: NDArray[np.float64], a: float) -> NDArray[np.float64]:
    """Keys' convolution kernel; https://ieeexplore.ieee.org/document/1163711."""
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = ((distance - 5) * distance + 8) * distance * a - 4 * a
    weights: NDArray[np.float64] = np.where(distance <= 1, near, np.where(distance < 2, far, 0))
    return weights


def _multiply(op: Writer, data: str, matrix: NDArray[np.float64], axis: Axis, rank: int, element_type: int) -> str:
    """Multiply along one axis: from the right if it is the last, from the left if the one before, else transposed."""
    if axis.place == rank - 2:
        return op.add("MatMul", op.constant(matrix, element_type, "weights"), data, tail="resized")
    weights = op.constant(matrix.T, element_type, "weights")
    if axis.place == rank - 1:
        return op.add("MatMul", data, weights, tail="resized")
    order = list(range(rank))
    order[axis.place], order[-1] = order[-1], order[axis.place]
    swapped = op.add("Transpose", data, perm=order)
    return op.add("Transpose", op.add("MatMul", swapped, weights), tail="resized", perm=order)
