"""Operators that slide a window over data, in numpy: convolutions and pools.

The reference evaluator reads NaN in the gaps of a window, rounds quantized results after it adds the zero point, moves
windows if it rounds their number up, mixes up pads of unequal sides, and includes padding in means.
Sources: https://onnx.ai/onnx/operators/, the pages of Conv (11), LpPool (18), MaxPool (12), AveragePool (19),
QLinearConv (10) and QLinearMatMul (10).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

from tools.fuzz.values import is_exact_type

__all__ = ["average_pool", "conv", "lp_pool", "max_pool", "qlinear_conv", "qlinear_matmul"]


@dataclass(frozen=True)
class _Windows:
    """How windows lie over data, axis by axis.

    Attributes:
        stated: the stated padding, before and after the data.
        around: the padding that the windows cover.
        starts: the positions in the padded data where they start.
        spans: their lengths.
        steps: the distances of their elements.
    """

    stated: Sequence[tuple[int, int]]
    around: Sequence[tuple[int, int]]
    starts: Sequence[slice]
    spans: Sequence[int]
    steps: Sequence[slice]

    def over(self, x: np.ndarray, padding: float = 0) -> np.ndarray:
        """The elements in the windows over data: instance, channel, windows, elements of a window."""
        padded = np.pad(x, [(0, 0), (0, 0), *self.around], constant_values=padding)
        views = np.lib.stride_tricks.sliding_window_view(padded, self.spans, tuple(range(2, x.ndim)))
        return views[(slice(None), slice(None), *self.starts, *self.steps)]


def _windows(
    sizes: Sequence[int],
    kernel_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    **_: Any,
) -> _Windows:
    rank = len(kernel_shape)
    strides, dilations, pads = strides or [1] * rank, dilations or [1] * rank, pads or [0] * 2 * rank
    stated, around, starts, spans = [], [], [], []
    for axis, size in enumerate(sizes):
        stride, span = strides[axis], (kernel_shape[axis] - 1) * dilations[axis] + 1
        begin, end = pads[axis], pads[rank + axis]
        if auto_pad.startswith("SAME"):
            missing = max((-(-size // stride) - 1) * stride + span - size, 0)
            begin = missing // 2 if auto_pad == "SAME_UPPER" else missing - missing // 2
            end = missing - begin
        room = size + begin + end - span
        last = -(-room // stride) if ceil_mode and not auto_pad.startswith("SAME") else room // stride
        if last * stride >= size + begin:
            last -= 1  # it would start in the padding after the data
        stated.append((begin, end))
        around.append((begin, max(end, last * stride + span - size - begin)))
        starts.append(slice(0, last * stride + 1, stride))
        spans.append(span)
    return _Windows(stated, around, starts, spans, [slice(None, None, step) for step in dilations])


def conv(x: np.ndarray, w: np.ndarray, b: np.ndarray | None = None, group: int = 1, **how: Any) -> np.ndarray:
    """Conv, in double precision."""
    how["kernel_shape"] = w.shape[2:]
    rank = len(w.shape) - 2
    products = [
        np.tensordot(data, weights, axes=([1, *_elements(w.shape[2:])], list(range(1, rank + 2))))
        for data, weights in zip(
            np.split(_windows(x.shape[2:], **how).over(x.astype(np.float64)), group, axis=1),
            np.split(w.astype(np.float64), group),
            strict=True,
        )
    ]
    sums = np.moveaxis(np.concatenate(products, axis=-1), -1, 1)
    return (sums if b is None else sums + _column(b, rank)).astype(x.dtype)


def lp_pool(x: np.ndarray, kernel_shape: list[int], p: float = 2, **how: Any) -> np.ndarray:
    """LpPool, in double precision."""
    powers = _windows(x.shape[2:], kernel_shape, **how).over(np.abs(x.astype(np.float64))) ** float(p)
    return (powers.sum(axis=_elements(kernel_shape)) ** (1 / float(p))).astype(x.dtype)


def max_pool(x: np.ndarray, kernel_shape: list[int], **how: Any) -> np.ndarray:
    """The first output of MaxPool."""
    lowest = ml_dtypes.iinfo(x.dtype).min if is_exact_type(x.dtype) else -np.inf
    largest: np.ndarray = _windows(x.shape[2:], kernel_shape, **how).over(x, lowest).max(axis=_elements(kernel_shape))
    return largest


def average_pool(x: np.ndarray, kernel_shape: list[int], count_include_pad: int = 0, **how: Any) -> np.ndarray:
    """AveragePool, in double precision; padding that rounding up adds never counts."""
    windows = _windows(x.shape[2:], kernel_shape, **how)
    counts = np.pad(np.ones(x.shape[2:]), windows.stated, constant_values=count_include_pad)[None, None]
    rest = [(0, all_of[1] - stated[1]) for all_of, stated in zip(windows.around, windows.stated, strict=True)]
    number = replace(windows, around=rest).over(counts).sum(axis=_elements(kernel_shape))
    return (windows.over(x.astype(np.float64)).sum(axis=_elements(kernel_shape)) / number).astype(x.dtype)


def _elements(kernel_shape: Sequence[int]) -> tuple[int, ...]:
    """The axes of the elements of a window."""
    return tuple(range(-len(kernel_shape), 0))


def qlinear_conv(
    x: np.ndarray, xs: np.ndarray, xz: np.ndarray, w: np.ndarray, ws: np.ndarray, wz: np.ndarray, ys: np.ndarray,
    yz: np.ndarray, b: np.ndarray | None = None, **how: Any,
) -> np.ndarray:  # fmt: skip
    """QLinearConv; scale and zero point of the weights may be per output channel."""
    rank = x.ndim - 2
    weights = w.astype(np.float64) - wz.astype(np.float64).reshape(-1, *(1,) * (rank + 1))
    sums = conv(x.astype(np.float64) - xz.astype(np.float64), weights, b, **how)
    return _quantized(sums * _column(xs * ws, rank), ys, yz)


def qlinear_matmul(
    a: np.ndarray, a_s: np.ndarray, az: np.ndarray, b: np.ndarray, bs: np.ndarray, bz: np.ndarray, ys: np.ndarray,
    yz: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """QLinearMatMul with one scale per tensor."""
    if any(one.size != 1 for one in (a_s, az, bs, bz, ys, yz)):
        raise NotImplementedError("scales of rows and columns")
    whole = (a.astype(np.float64) - az.astype(np.float64)) @ (b.astype(np.float64) - bz.astype(np.float64))
    return _quantized(whole * (a_s.astype(np.float32) * bs.astype(np.float32)), ys, yz)


def _quantized(x: np.ndarray, scale: np.ndarray, zero: np.ndarray) -> np.ndarray:
    """Round before adding the zero point, and saturate, as in QuantizeLinear."""
    limits = np.iinfo(zero.dtype)
    rounded = np.rint(x.astype(np.float32) / scale.astype(np.float32)).astype(np.float64) + zero.astype(np.float64)
    return np.clip(rounded, limits.min, limits.max).astype(zero.dtype)


def _column(values: np.ndarray, rank: int) -> np.ndarray:
    """Values per channel, broadcast over spatial dimensions."""
    return values.reshape(-1, *(1,) * rank)
