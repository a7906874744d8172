"""Dilated windows of pools; not text, since numpy plans their places over known sizes.

AveragePool below opset 19 and LpPool below 18 are convolutions, one group per channel.
MaxPool below 10 gathers what lies in each window, one axis after the other, and takes the largest.

Sources: the pages of AveragePool (19), LpPool (18), MaxPool (10).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.ops.pooling import (
    Window,
    is_dilated,
    leaves_its_size,
    lower_ceil,
    refusal_of_dilations,
    rounds_up,
    windows_of,
)
from reducelower.adapters.registry import Outcome, Rewrite, lowers
from reducelower.model.attributes import value_of
from reducelower.model.numbers import HALVES


@lowers("AveragePool", 19)
@leaves_its_size
def _lower_mean(op: Writer) -> Outcome:
    """The mean over a dilated window is a convolution with equal weights.

    Where padding does not count, what its zeros took from the mean is made up for, place by place.
    """
    if not is_dilated(op.node):
        return None
    windows = windows_of(op)
    pads = _pads(op.node, windows)
    counts_all = not any(pads) or (op.attribute("count_include_pad", 0) and not rounds_up(op.node))
    if not counts_all and any(window.size is None for window in windows):
        raise refusal_of_dilations(op.node)
    mean = _convolved(op, op.input(0), op.element_type(0), 1.0 / prod(op.attribute("kernel_shape")), pads)
    if counts_all:
        return op.yields_last()
    share = op.constant(_share(op, windows, pads), op.element_type(0), "share_inside")
    return op.yields("Div", mean, share)


def _where_dilated(lower: Callable[[Writer], Outcome]) -> Rewrite:
    """A rewrite for dilated windows, beside the one for all others."""
    of_dilated = leaves_its_size(lower)
    return lambda op: of_dilated(op) if is_dilated(op.node) else lower_ceil(op)


@lowers("MaxPool", 10)
@_where_dilated
def _dilated_maximum(op: Writer) -> Outcome:
    """The largest of a window is the largest along one axis of the largest along the others.

    A place in the padding is another one of the same window, which changes nothing.
    """
    windows = windows_of(op)
    pads = _pads(op.node, windows)
    if op.wants(1) or any(window.size is None for window in windows):
        raise refusal_of_dilations(op.node)
    data = op.input(0)
    for axis, (places, window) in enumerate(zip(_places(op, windows, pads), windows, strict=True), 2):
        inside = (places >= 0) & (places < window.size)
        if not inside.any(axis=1).all():
            raise refusal_of_dilations(op.node)
        any_place = np.take_along_axis(places, inside.argmax(axis=1, keepdims=True), 1)
        taken = op.integers(np.where(inside, places, any_place), f"windows_{axis}")
        data = op.add("Gather", data, taken, tail=f"windows_{axis}", axis=axis)
        data = op.add("ReduceMax", data, tail=f"largest_{axis}", axes=[axis + 1], keepdims=0)
    return op.yields_last()


@lowers("LpPool", 18)
@_where_dilated
def _dilated_norm(op: Writer) -> Outcome:
    """The norm over a dilated window is the root of a convolution of powers with ones; padding adds nothing to it.

    Half precision would overflow in the powers, so it is computed in float, as kernels do.
    """
    pads = _pads(op.node, windows_of(op))
    p = int(op.attribute("p", 2))
    element_type = op.element_type(0)
    wide = TensorProto.FLOAT if element_type in HALVES else element_type
    norm = op.add("Abs", op.cast(op.input(0), element_type, wide, "wide"), tail="magnitude")
    if p != 1:
        norm = op.add("Pow", norm, op.constant(p, wide, "p"), tail="power")
    norm = _convolved(op, norm, wide, 1.0, pads)
    if p != 1:
        norm = op.add("Pow", norm, op.constant(1 / p, wide, "root"), tail="norm")
    return op.yields_cast(norm, wide, element_type)


def _pads(node: NodeProto, windows: Sequence[Window]) -> list[int]:
    """The padding as numbers, that of rounding up included.

    Refused where sizes do not tell it, and with auto_pad, which onnxruntime 1.31 works out without the dilations.
    """
    ends = [window.plain_end if rounds_up(node) else window.end for window in windows]
    known = [end for end in ends if end is not None]
    if len(known) != len(ends) or str(value_of(node, "auto_pad", "NOTSET")).startswith("SAME"):
        raise refusal_of_dilations(node)
    return [window.begin for window in windows] + known


def _places(op: Writer, windows: Sequence[Window], pads: Sequence[int]) -> Iterator[np.ndarray]:
    """Where along each spatial axis the elements of windows lie, one row per window; below zero before the data."""
    for axis, (window, extent, dilation) in enumerate(
        zip(windows, op.attribute("kernel_shape"), op.attribute("dilations"), strict=True)
    ):
        assert window.size is not None
        begin, end = pads[axis], pads[axis + len(windows)]
        count = (window.size + begin + end - window.kernel) // window.stride + 1
        op.make_room(count, extent)
        yield np.arange(count)[:, None] * window.stride - begin + np.arange(extent) * dilation


def _share(op: Writer, windows: Sequence[Window], pads: Sequence[int]) -> np.ndarray:
    """How much of each window counts, along the spatial axes: what lies in the data, or in the padding asked for."""
    share = np.ones(())
    for places, window in zip(_places(op, windows, pads), windows, strict=True):
        assert window.size is not None
        low, high = 0, window.size
        if op.attribute("count_include_pad", 0):
            low, high = -window.begin, window.size + window.end
        share = np.multiply.outer(share, ((places >= low) & (places < high)).mean(axis=1))
    return share


def _convolved(op: Writer, data: str, element_type: int, weight: float, pads: list[int]) -> str:
    """Append the sum over dilated windows of every element times a weight; returns its name."""
    node = op.node
    shape = op.shape(0)
    channels = None if shape is None else shape[1]
    if channels is None:
        raise refusal_of_dilations(node)
    kernel = [int(size) for size in value_of(node, "kernel_shape")]
    op.make_room(channels, *kernel)
    weights = np.full((channels, 1, *kernel), weight)
    return op.add(
        "Conv",
        data,
        op.constant(weights, element_type, "weights"),
        tail="convolved",
        group=channels,
        dilations=list(value_of(node, "dilations")),
        pads=pads,
        strides=list(value_of(node, "strides") or [1] * len(kernel)),
    )
