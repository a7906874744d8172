"""onnx's reference evaluator, with common operators put right that it computes otherwise than their pages say (1.23).

Of others that it gets wrong, `reference_gaps.wrong_in_reference` says that it is no evidence.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnx.reference.ops import (
    op_batch_normalization,
    op_cast,
    op_cast_like,
    op_clip,
    op_log_softmax,
    op_loop,
    op_lp_normalization,
    op_max_pool,
    op_pow,
    op_quantize_linear,
    op_resize,
    op_stft,
)
from onnx.reference.ops._quant_utils import reshape_input

from reducelower.numerics.measure import Array

__all__ = ["Evaluator"]

_WITH_BOUNDS_AS_INPUTS = 11
_WITH_TRAINING_MODE = 14
_FEW_BITS = (TensorProto.INT4, TensorProto.UINT4, TensorProto.INT2, TensorProto.UINT2)
_FAR = 2.0**30  # beyond what integers that are quantized to hold, with any zero point, and an int32


class BatchNormalization(op_batch_normalization.BatchNormalization_14):
    """Below opset 14 it mixes statistics of the data into those given, though one output says that none are wanted."""

    def _run(self, x: Array, *statistics: Array, training_mode: int = 0, **said: Any) -> tuple[Array, ...]:
        if self.run_params["opsets"][""] < _WITH_TRAINING_MODE and len(self.onnx_node.output) > 1:
            raise NotImplementedError("onnx.reference does not train as the page says below opset 14")
        given = {"epsilon": said["epsilon"], "momentum": said["momentum"], "training_mode": training_mode}
        found: tuple[Array, ...] = super()._run(x, *statistics, **given)  # type: ignore[no-untyped-call]
        return found


class Pow(op_pow.Pow):
    """numpy takes the root for a power of one half, which is not the same of minus infinity (IEEE 754-2019, 9.2.1)."""

    def _run(self, a: Array, b: Array) -> tuple[Array]:
        with np.errstate(all="ignore"):
            found = np.power(a, b)
            if a.dtype.kind not in "iu":
                found = np.where((a == -np.inf) & (b == 0.5), np.inf, found)
        return (found.astype(a.dtype),)


def _rounded(x: Array, to: int) -> Array:
    """What is cast to fewer than 8 bits, floats as the page of these types has them: to the nearest, ties to even."""
    is_rounded = to in _FEW_BITS and x.dtype.kind in "fV" and helper.np_dtype_to_tensor_dtype(x.dtype) not in _FEW_BITS
    return np.rint(x.astype(np.float64)) if is_rounded else x


class Cast(op_cast.Cast_25):
    """It truncates floats that it casts to integers of 4 and 2 bits."""

    def _run(self, x: Array, to: int, saturate: bool = True, round_mode: str = "up") -> tuple[Array]:  # type: ignore[override]
        found: tuple[Array] = super()._run(_rounded(x, to), to, saturate, round_mode)  # type: ignore[no-untyped-call]
        return found


class CastLike(op_cast_like.CastLike_25):
    """As Cast."""

    def _run(self, x: Array, y: Array, saturate: bool = True, **_: Any) -> tuple[Array]:
        to = helper.np_dtype_to_tensor_dtype(y.dtype)
        found: tuple[Array] = super()._run(_rounded(x, to), y, saturate)  # type: ignore[no-untyped-call]
        return found


class Clip(op_clip.Clip_11):
    """It leaves infinities where a bound is not given: the largest number of the type, below opset 11 of float32."""

    def _run(self, data: Array, low: Any = None, high: Any = None, **said: Any) -> tuple[Array]:  # type: ignore[override]
        bounds = [said.get("min", low), said.get("max", high)]
        if data.dtype.kind == "f":
            limits = np.finfo(data.dtype if self.run_params["opsets"][""] >= _WITH_BOUNDS_AS_INPUTS else np.float32)
            ends = limits.min, limits.max
            bounds = [end if bound is None else bound for bound, end in zip(bounds, ends, strict=True)]
        with np.errstate(over="ignore"):
            found: tuple[Array] = super()._run(data, *bounds)  # type: ignore[no-untyped-call]
        return found


class Loop(op_loop.Loop):
    """It joins what every turn gives along an axis that this has, rather than along a new one."""

    def _run(  # type: ignore[override]
        self, m: Any, cond: Any, *carried: Any, context: Any = None, **said: Any
    ) -> tuple[Any, ...]:
        given = {name: said[name] for name in ("attributes", "bindings") if name in said}
        handed, turns = list(carried), list[list[Any]]()
        is_on = cond is None or bool(np.all(cond))
        body: Any = self.body  # type: ignore[attr-defined]  # made from the attribute, as `_run_body` is
        while is_on and (m is None or len(turns) < m):
            state = np.array(len(turns), np.int64), np.array(is_on), *handed
            inputs = {**(context or {}), **dict(zip(body.input_names, state, strict=True))}
            going, *found = self._run_body(inputs, **given)  # type: ignore[attr-defined]  # made from the attribute
            is_on, handed = bool(np.all(going)), found[: self.N]
            turns.append(found[self.N :])
        if self.K and not turns:
            raise NotImplementedError("of no turn, the shape of what a turn gives is not known")
        return (*handed, *(np.stack(values) for values in zip(*turns, strict=True)))


class MaxPool(op_max_pool.MaxPool):
    """Where all steps are one, it takes pads axis by axis, which come first before, then behind all axes."""

    def _run(self, x: Array, **said: Any) -> tuple[Array, ...]:  # type: ignore[override]
        found: tuple[Array, ...] = self._max_pool(x, **said)  # type: ignore[no-untyped-call]  # onnx leaves it untyped
        return found


class LogSoftmax(op_log_softmax.LogSoftmax):
    """It takes the logarithm of probabilities, and the small ones are zero by then."""

    axis: int

    def _run(self, x: Array) -> tuple[Array]:  # type: ignore[override]
        shifted = x - np.max(x, axis=self.axis, keepdims=True, initial=-np.inf)
        return ((shifted - np.log(np.sum(np.exp(shifted), axis=self.axis, keepdims=True))).astype(x.dtype),)


class LpNormalization(op_lp_normalization.LpNormalization):
    """It takes powers of numbers below zero rather than of magnitudes."""

    def _run(self, x: Array, axis: int | None = None, p: int | None = None) -> tuple[Array]:
        (found,) = super()._run(np.abs(x), axis, p)  # type: ignore[no-untyped-call]
        return (np.copysign(found, x).astype(x.dtype),)


class QuantizeLinear(op_quantize_linear.QuantizeLinear_25):
    """It divides in the type of the data where nothing is said, and its page (23) says that of the scale.

    It also casts quotients to int32 before it saturates, which wraps those beyond, and has no integer for infinities.
    """

    def _run(  # type: ignore[override]
        self, x: Array, scale: Array, *point: Array, precision: int | None = None, **said: Any
    ) -> tuple[Array]:
        if x.dtype != scale.dtype and not precision:
            raise NotImplementedError("onnx.reference does not divide in the type of the scale")
        kind = helper.tensor_dtype_to_np_dtype(precision) if precision else x.dtype
        divisor = reshape_input(scale, x.shape, said.get("axis", 1), said.get("block_size"))
        with np.errstate(all="ignore"):
            quotient = (x.astype(kind) / divisor.astype(kind)).astype(np.float64)
        found: tuple[Array] = super()._run(np.clip(quotient, -_FAR, _FAR), np.ones(scale.shape), *point, **said)
        return found


class Resize(op_resize.Resize):
    """It takes axes from the back for places, which there are none of."""

    def _run(  # type: ignore[override]
        self, x: Array, roi: Any = None, scales: Any = None, sizes: Any = None, axes: Any = None, **said: Any
    ) -> tuple[Array]:
        counted = None if axes is None else [axis % x.ndim for axis in axes]
        found: tuple[Array] = super()._run(x, roi, scales, sizes, axes=counted, **said)
        return found


class STFT(op_stft.STFT):
    """It takes signals with an axis for real and imaginary parts alone; runtimes take real ones without, too."""

    def _run(self, x: Array, step: Array, *window: Array | None, **said: Any) -> tuple[Array]:  # type: ignore[override]
        signal = x[..., np.newaxis] if x.ndim == 2 else x
        found: tuple[Array] = super()._run(signal, step, *window, **said)  # type: ignore[no-untyped-call]
        return found


class Evaluator(ReferenceEvaluator):
    """The evaluator, with these operators in functions and graphs inside, too."""

    def __init__(self, proto: Any, *, new_ops: list[type[OpRun]] | None = None, **given: Any) -> None:
        super().__init__(proto, new_ops=new_ops or _RIGHT, **given)


_RIGHT: list[type[OpRun]] = [
    BatchNormalization,
    Cast,
    CastLike,
    Clip,
    LogSoftmax,
    Loop,
    LpNormalization,
    MaxPool,
    Pow,
    QuantizeLinear,
    Resize,
    STFT,
]
