"""onnx's reference evaluator, with operators put right that it computes otherwise than their pages say (onnx 1.23).

Of what would take more than a few lines, `doubts.wrong_in_reference` says that it is no evidence.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnx.reference.ops import op_average_pool, op_gather_elements, op_log_softmax, op_lp_pool, op_max_pool, op_pow

from reducelower.numerics.measure import Array

__all__ = ["Evaluator"]


class Pow(op_pow.Pow):
    """numpy takes the root for a power of one half, which is not the same of minus infinity (IEEE 754-2019, 9.2.1)."""

    def _run(self, a: Array, b: Array) -> tuple[Array]:
        with np.errstate(all="ignore"):
            found = np.where((a == -np.inf) & (b == 0.5), np.inf, np.power(a, b))
        return (found.astype(a.dtype),)


class GatherElements(op_gather_elements.GatherElements):
    """numpy chooses among 32 at most, takes real numbers alone, and wraps what is out of range."""

    def _run(self, data: Array, indices: Array, axis: int = 0) -> tuple[Array]:
        places: list[Any] = list(np.indices(indices.shape, sparse=True))
        places[axis] = indices
        return (data[tuple(places)],)


class MaxPool(op_max_pool.MaxPool):
    """Where all steps are one, it takes pads axis by axis, which come first before, then behind all axes."""

    def _run(self, x: Array, **said: Any) -> tuple[Array, ...]:  # type: ignore[override]
        found: tuple[Array, ...] = self._max_pool(x, **said)  # type: ignore[no-untyped-call]  # onnx leaves it untyped
        return found


class LogSoftmax(op_log_softmax.LogSoftmax):
    """It takes the logarithm of probabilities, of which the small ones are zero by then."""

    def _run(self, x: Array, axis: int = -1) -> tuple[Array]:
        shifted = x - np.max(x, axis=axis, keepdims=True, initial=-np.inf)
        return ((shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))).astype(x.dtype),)


class AveragePool(op_average_pool.AveragePool_19):
    """It takes pads axis by axis, and those of two axes alone."""

    def _run(self, x: Array, count_include_pad: int = 0, **said: Any) -> tuple[Array]:  # type: ignore[override]
        counted = np.ones(x.shape, x.dtype)
        counts = _summed(counted, of_pads=float(bool(count_include_pad)), **said)
        with np.errstate(all="ignore"):
            return ((_summed(x, **said) / counts).astype(x.dtype),)


class LpPool(op_lp_pool.LpPool):
    """It takes pads axis by axis here, too."""

    def _run(self, x: Array, p: int = 2, **said: Any) -> tuple[Array]:  # type: ignore[override]
        return ((_summed(np.abs(x) ** p, **said) ** (1 / p)).astype(x.dtype),)


def _summed(
    x: Array,
    kernel_shape: Any = None,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Any = None,
    pads: Any = None,
    strides: Any = None,
    of_pads: float = 0.0,
) -> Array:
    """Sums over windows, with a number in the place of pads; what is beyond these counts nothing.

    Source: https://onnx.ai/onnx/operators/onnx__AveragePool.html
    """
    rank, ones = len(kernel_shape), [1] * len(kernel_shape)
    sizes, steps, gaps = np.array(x.shape[2:]), np.array(strides or ones), np.array(dilations or ones)
    reach = (np.array(kernel_shape) - 1) * gaps + 1
    before, behind = np.array(pads or [0] * 2 * rank).reshape(2, rank)
    if auto_pad == "VALID":
        before, behind = before * 0, behind * 0
    elif auto_pad != "NOTSET":
        total = np.maximum((-(-sizes // steps) - 1) * steps + reach - sizes, 0)
        before = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
        behind = total - before
    padded = np.pad(x, [(0, 0)] * 2 + list(zip(before, behind, strict=True)), constant_values=of_pads)
    room = sizes + before + behind - reach
    count = (-(-room // steps) if ceil_mode else room // steps) + 1
    if ceil_mode:
        count -= (count - 1) * steps >= sizes + before
    missing = np.maximum((count - 1) * steps + reach - sizes - before - behind, 0)
    padded = np.pad(padded, [(0, 0)] * 2 + [(0, more) for more in missing])
    windows = np.lib.stride_tricks.sliding_window_view(padded, tuple(reach), axis=tuple(range(2, 2 + rank)))
    taken = [slice(0, number * step, step) for number, step in zip(count, steps, strict=True)]
    inside = windows[(slice(None), slice(None), *taken, *(slice(None, None, gap) for gap in gaps))]
    return np.asarray(inside.sum(axis=tuple(range(-rank, 0)), dtype=np.float64))


class Evaluator(ReferenceEvaluator):
    """The evaluator, with these operators in functions and graphs inside, too."""

    def __init__(self, proto: Any, *, new_ops: list[type[OpRun]] | None = None, **given: Any) -> None:
        """Load a model, a graph or a function, as it does."""
        super().__init__(proto, new_ops=new_ops or _RIGHT, **given)


_RIGHT: list[type[OpRun]] = [AveragePool, GatherElements, LogSoftmax, LpPool, MaxPool, Pow]
