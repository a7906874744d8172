"""What slides a window over data, in numpy: convolutions and norms.

The reference evaluator lets NaN through the gaps of a window, rounds quantized results after the zero point is added,
and moves windows where it rounds their number up.
Sources: https://onnx.ai/onnx/operators/, the pages of Conv (11), LpPool (18), QLinearConv (10) and QLinearMatMul (10).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["conv", "lp_pool", "qlinear_conv", "qlinear_matmul"]


def _windows(
    x: np.ndarray,
    kernel_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    **_: Any,
) -> np.ndarray:
    """The windows over data with zeros around it: instance, channel, places, offsets in the window."""
    rank = len(kernel_shape)
    strides, dilations, pads = strides or [1] * rank, dilations or [1] * rank, pads or [0] * 2 * rank
    around, places, spans = [], [], []
    for axis, size in enumerate(x.shape[2:]):
        stride, span = strides[axis], (kernel_shape[axis] - 1) * dilations[axis] + 1
        begin, end = pads[axis], pads[rank + axis]
        if auto_pad.startswith("SAME"):
            missing = max((-(-size // stride) - 1) * stride + span - size, 0)
            begin = missing // 2 if auto_pad == "SAME_UPPER" else missing - missing // 2
            end = missing - begin
        room = size + begin + end - span
        steps = -(-room // stride) if ceil_mode and not auto_pad.startswith("SAME") else room // stride
        if steps * stride >= size + begin:
            steps -= 1  # it would start in the padding behind the data
        around.append((begin, max(end, steps * stride + span - size - begin)))
        places.append(slice(0, steps * stride + 1, stride))
        spans.append(span)
    padded = np.pad(x, [(0, 0), (0, 0), *around])
    views = np.lib.stride_tricks.sliding_window_view(padded, spans, tuple(range(2, x.ndim)))
    return views[(slice(None), slice(None), *places, *(slice(None, None, step) for step in dilations))]


def conv(x: np.ndarray, w: np.ndarray, b: np.ndarray | None = None, group: int = 1, **how: Any) -> np.ndarray:
    """Conv, in double precision."""
    how["kernel_shape"] = w.shape[2:]
    rank = len(w.shape) - 2
    found = [
        np.tensordot(data, weights, axes=([1, *range(-rank, 0)], list(range(1, rank + 2))))
        for data, weights in zip(
            np.split(_windows(x.astype(np.float64), **how), group, axis=1),
            np.split(w.astype(np.float64), group),
            strict=True,
        )
    ]
    sums = np.moveaxis(np.concatenate(found, axis=-1), -1, 1)
    return (sums if b is None else sums + _column(b, rank)).astype(x.dtype)


def lp_pool(x: np.ndarray, kernel_shape: list[int], p: float = 2, **how: Any) -> np.ndarray:
    """LpPool, in double precision."""
    powers = _windows(np.abs(x.astype(np.float64)), kernel_shape, **how) ** float(p)
    return (powers.sum(axis=tuple(range(-len(kernel_shape), 0))) ** (1 / float(p))).astype(x.dtype)


def qlinear_conv(
    x: np.ndarray, xs: np.ndarray, xz: np.ndarray, w: np.ndarray, ws: np.ndarray, wz: np.ndarray, ys: np.ndarray,
    yz: np.ndarray, b: np.ndarray | None = None, **how: Any,
) -> np.ndarray:  # fmt: skip
    """QLinearConv; scale and zero point of the weights may be one an output channel."""
    rank = x.ndim - 2
    weights = w.astype(np.float64) - wz.astype(np.float64).reshape(-1, *(1,) * (rank + 1))
    sums = conv(x.astype(np.float64) - xz.astype(np.float64), weights, b, **how)
    return _quantized(sums * _column(xs * ws, rank), ys, yz)


def qlinear_matmul(
    a: np.ndarray, a_s: np.ndarray, az: np.ndarray, b: np.ndarray, bs: np.ndarray, bz: np.ndarray, ys: np.ndarray,
    yz: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """QLinearMatMul with one scale a tensor."""
    if any(one.size != 1 for one in (a_s, az, bs, bz, ys, yz)):
        raise NotImplementedError("scales of rows and columns")
    whole = (a.astype(np.float64) - az.astype(np.float64)) @ (b.astype(np.float64) - bz.astype(np.float64))
    return _quantized(whole * (a_s.astype(np.float32) * bs.astype(np.float32)), ys, yz)


def _quantized(x: np.ndarray, scale: np.ndarray, zero: np.ndarray) -> np.ndarray:
    """Rounded before the zero point is added, and saturated, as in QuantizeLinear."""
    limits = np.iinfo(zero.dtype)
    rounded = np.rint(x.astype(np.float32) / scale.astype(np.float32)).astype(np.float64) + zero.astype(np.float64)
    return np.clip(rounded, limits.min, limits.max).astype(zero.dtype)


def _column(values: np.ndarray, rank: int) -> np.ndarray:
    """Values of channels, spread over spatial dimensions."""
    return values.reshape(-1, *(1,) * rank)
