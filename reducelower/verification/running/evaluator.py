"""onnx's reference evaluator (1.23), with common operators corrected that it does not compute as their pages say.

`reference.wrong_in_reference` lists the other operators that it gets wrong. The docstrings say what onnx's own
version of the class does wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnx.reference.ops import (
    op_batch_normalization,
    op_clip,
    op_gather_elements,
    op_loop,
    op_pow,
    op_quantize_linear,
    op_resize,
    op_stft,
)
from onnx.reference.ops._quant_utils import reshape_input

from reducelower.numerics.measure import Array

__all__ = ["Evaluator"]

_WITH_BOUNDS_AS_INPUTS = 11
_FAR = 2.0**30  # out of range for every quantized type with any zero point, and within int32


class Pow(op_pow.Pow):
    """For the exponent 0.5, numpy takes the square root, which differs for minus infinity (IEEE 754-2019, 9.2.1)."""

    def _run(self, a: Array, b: Array) -> tuple[Array]:
        with np.errstate(all="ignore"):
            result = np.power(a, b)
            if a.dtype.kind not in "iu":
                result = np.where((a == -np.inf) & (b == 0.5), np.inf, result)
        return (result.astype(a.dtype),)


class BatchNormalization(op_batch_normalization.BatchNormalization_14):
    """Below 14 it takes the statistics of the batch, not those given; later it adds to them in their own type."""

    def _run(  # type: ignore[override]
        self, *inputs: Array, epsilon: float, momentum: float, training_mode: int | None = None, **_: Any
    ) -> tuple[Array, ...]:
        if training_mode is None and len(self.output) > 1:
            raise NotImplementedError("onnx.reference yields no statistics below opset 14")
        kinds = [value.dtype for value in inputs]
        widest = np.result_type(*kinds)
        wide: Any = [value.astype(widest) for value in inputs]
        numbers = epsilon, momentum, training_mode or 0
        results: tuple[Array, ...] = super()._run(*wide, *numbers)  # type: ignore[no-untyped-call, call-arg]
        return tuple(value.astype(kind) for value, kind in zip(results, (kinds[0], *kinds[3:]), strict=False))


class Clip(op_clip.Clip_11):
    """It keeps infinities if a bound is absent. The default is the type's largest number, below opset 11 float32's."""

    def _run(  # type: ignore[override]
        self, data: Array, low: Any = None, high: Any = None, **attributes: Any
    ) -> tuple[Array]:
        bounds = [attributes.get("min", low), attributes.get("max", high)]
        if data.dtype.kind == "f":
            limits = np.finfo(data.dtype if self.run_params["opsets"][""] >= _WITH_BOUNDS_AS_INPUTS else np.float32)
            ends = limits.min, limits.max
            bounds = [end if bound is None else bound for bound, end in zip(bounds, ends, strict=True)]
        with np.errstate(over="ignore"):
            result: tuple[Array] = super()._run(data, *bounds)  # type: ignore[no-untyped-call]
        return result


class GatherElements(op_gather_elements.GatherElements):
    """It takes no indices of another shape than the data's, beside the axis."""

    def _run(self, data: Array, indices: Array, axis: int | None = None) -> tuple[Array]:
        places: list[Any] = list(np.indices(indices.shape, sparse=True))
        places[axis or 0] = indices
        return (data[tuple(places)],)


class Loop(op_loop.Loop):
    """It concatenates scan outputs along an existing axis instead of stacking them along a new one."""

    def _run(  # type: ignore[override]
        self, m: Any, cond: Any, *carried: Any, context: Any = None, **attributes: Any
    ) -> tuple[Any, ...]:
        passed_on = {name: attributes[name] for name in ("attributes", "bindings") if name in attributes}
        carried_on, scanned = list(carried), list[list[Any]]()
        is_on = cond is None or bool(np.all(cond))
        body: Any = self.body  # type: ignore[attr-defined]  # made from the attribute, as `_run_body` is
        while is_on and (m is None or len(scanned) < m):
            state = np.array(len(scanned), np.int64), np.array(is_on), *carried_on
            inputs = {**(context or {}), **dict(zip(body.input_names, state, strict=True))}
            condition, *values = self._run_body(inputs, **passed_on)  # type: ignore[attr-defined]  # made from the attribute
            is_on, carried_on = bool(np.all(condition)), values[: self.N]
            scanned.append(values[self.N :])
        if self.K and not scanned:
            raise NotImplementedError("without an iteration, the shape of the scan outputs is not known")
        return (*carried_on, *(np.stack(values) for values in zip(*scanned, strict=True)))


class QuantizeLinear(op_quantize_linear.QuantizeLinear_25):
    """Without `precision` it divides in the type of the data; its page (23) says in that of the scale.

    It also casts quotients to int32 before it saturates, so that large ones wrap and infinities become arbitrary.
    """

    def _run(  # type: ignore[override]
        self, x: Array, scale: Array, *point: Array, precision: int | None = None, **attributes: Any
    ) -> tuple[Array]:
        if x.dtype != scale.dtype and not precision:
            raise NotImplementedError("onnx.reference does not divide in the type of the scale")
        kind = helper.tensor_dtype_to_np_dtype(precision) if precision else x.dtype
        divisor = reshape_input(scale, x.shape, attributes.get("axis", 1), attributes.get("block_size"))
        with np.errstate(all="ignore"):
            quotient = (x.astype(kind) / divisor.astype(kind)).astype(np.float64)
        result: tuple[Array] = super()._run(np.clip(quotient, -_FAR, _FAR), np.ones(scale.shape), *point, **attributes)
        return result


class Resize(op_resize.Resize):
    """It begins elsewhere than pytorch_half_pixel where a length becomes one, and takes 1.5 for one."""

    def _run(self, x: Array, *where: Any, **attributes: Any) -> tuple[Array]:  # type: ignore[override]
        result: tuple[Array] = super()._run(x, *where, **attributes)
        mode = attributes["coordinate_transformation_mode"]
        if mode == "pytorch_half_pixel" and any(
            new == 1 != old for old, new in zip(x.shape, result[0].shape, strict=True)
        ):
            raise NotImplementedError("onnx.reference starts elsewhere where a length becomes one")
        return result


class STFT(op_stft.STFT):
    """It only accepts signals with an axis for real and imaginary parts; runtimes accept real ones without."""

    def _run(self, x: Array, step: Array, *window: Array | None, **attributes: Any) -> tuple[Array]:  # type: ignore[override]
        signal = x[..., np.newaxis] if x.ndim == 2 else x
        result: tuple[Array] = super()._run(signal, step, *window, **attributes)  # type: ignore[no-untyped-call]
        return result


class Evaluator(ReferenceEvaluator):
    """The evaluator with the corrected operators, also in functions and subgraphs."""

    def __init__(self, proto: Any, *, new_ops: list[type[OpRun]] | None = None, **options: Any) -> None:
        super().__init__(proto, new_ops=new_ops or _CORRECTED, **options)


_CORRECTED: list[type[OpRun]] = [
    BatchNormalization,
    Clip,
    GatherElements,
    Loop,
    Pow,
    QuantizeLinear,
    Resize,
    STFT,
]
