"""onnx's reference evaluator, with operators put right that it computes otherwise than their pages say (onnx 1.23).

Of what would take more than a few lines, `reference_gaps.wrong_in_reference` says that it is no evidence.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnx.reference.ops import (
    op_average_pool,
    op_center_crop_pad,
    op_clip,
    op_conv,
    op_deform_conv,
    op_gather,
    op_gather_elements,
    op_grid_sample,
    op_layer_normalization,
    op_log_softmax,
    op_loop,
    op_lp_pool,
    op_max_pool,
    op_one_hot,
    op_pow,
    op_quantize_linear,
    op_reduce_mean,
    op_rms_normalization,
    op_shrink,
    op_split,
    op_unsqueeze,
)

from reducelower.numerics.measure import Array

__all__ = ["Evaluator"]

_WITH_BOUNDS_AS_INPUTS = 11
_FAR = 2.0**30  # beyond what integers that are quantized to hold, with any zero point, and an int32


class Pow(op_pow.Pow):
    """numpy takes the root for a power of one half, which is not the same of minus infinity (IEEE 754-2019, 9.2.1)."""

    def _run(self, a: Array, b: Array) -> tuple[Array]:
        with np.errstate(all="ignore"):
            found = np.where((a == -np.inf) & (b == 0.5), np.inf, np.power(a, b))
        return (found.astype(a.dtype),)


class CenterCropPad(op_center_crop_pad.CenterCropPad):
    """It takes fewer sizes than there are axes, and leaves the others as they are."""

    def _run(self, data: Array, shape: Array, axes: Any = None) -> tuple[Array]:
        axes = axes or range(data.ndim)
        if len(shape) != len(axes):
            raise ValueError(f"{len(shape)} sizes are not those of {len(axes)} axes")
        for axis, size in zip(axes, map(int, shape), strict=True):
            cut, added = max(data.shape[axis] - size, 0), max(size - data.shape[axis], 0)
            data = data.take(np.arange(cut // 2, cut // 2 + data.shape[axis] - cut), axis)
            pads = [(0, 0)] * data.ndim
            pads[axis] = added // 2, added - added // 2
            data = np.pad(data, pads)
        return (data,)


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


class OneHot(op_one_hot.OneHot):
    """It adds a multiple of the difference of the two values, which makes NaN and infinities of others."""

    def _run(self, indices: Array, depth: Array, values: Array, axis: int = -1) -> tuple[Array]:
        count = np.int64(np.asarray(depth).item())
        places = np.expand_dims(np.where(indices < 0, indices + count, indices), axis)
        sizes = [1] * places.ndim
        sizes[axis] = -1
        return (np.where(places == np.arange(count).reshape(sizes), values[1], values[0]),)


class QuantizeLinear(op_quantize_linear.QuantizeLinear_25):
    """It divides in the type of the data where nothing is said, and its page (23) says that of the scale.

    It also casts quotients to int32 before it saturates, which wraps those beyond, and has no integer for infinities.
    """

    def _run(  # type: ignore[override]
        self,
        x: Array,
        scale: Array,
        point: Array | None = None,
        precision: int | None = None,
        output_dtype: int | None = None,
        **said: Any,
    ) -> tuple[Array]:
        if x.dtype != scale.dtype and not precision:
            raise NotImplementedError("onnx.reference does not divide in the type of the scale")
        kind = (
            np.dtype(helper.tensor_dtype_to_np_dtype(output_dtype or TensorProto.UINT8))
            if point is None
            else point.dtype
        )
        if kind.name.startswith(("int", "uint")):
            divisor = _along(scale, x.shape, said.get("axis", 1), said.get("block_size"))
            wide = x.astype(helper.tensor_dtype_to_np_dtype(precision)) if precision else x
            with np.errstate(all="ignore"):
                quotient = (wide / divisor.astype(wide.dtype)).astype(np.float64)
            x, scale, precision = np.clip(quotient, -_FAR, _FAR), np.ones(scale.shape), None
        found: tuple[Array] = super()._run(x, scale, point, precision=precision, output_dtype=output_dtype, **said)
        return found


class Gather(op_gather.Gather):
    """That of onnx 1.22 gives a vector of none for no indices of any rank."""

    def _run(self, x: Array, indices: Array, axis: int = 0) -> tuple[Array]:
        return (np.asarray(np.take(x, indices.astype(np.int64), axis=axis)),)


class Unsqueeze(op_unsqueeze.Unsqueeze_13):
    """Before opset 13 it adds one axis after the other, though negative ones count from the back of the result."""

    def _run(self, data: Array, axes: Any = None) -> tuple[Array]:
        return (np.expand_dims(data, tuple(np.atleast_1d(axes).tolist())),)


class GatherElements(op_gather_elements.GatherElements):
    """numpy chooses among 32 at most, takes only real numbers, and wraps what is out of range."""

    def _run(self, data: Array, indices: Array, axis: int = 0) -> tuple[Array]:
        places: list[Any] = list(np.indices(indices.shape, sparse=True))
        places[axis] = indices
        return (data[tuple(places)],)


class ReduceMean(op_reduce_mean.ReduceMean_18):
    """It adds up float16 in float16, which overflows where the mean does not."""

    def _run(self, data: Array, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0) -> tuple[Array]:
        along = None if axes is None else tuple(int(axis) for axis in axes)
        if not along and noop_with_empty_axes:
            return (data,)
        wide = np.float32 if data.dtype == np.float16 else data.dtype
        mean = np.mean(data, along or None, wide, keepdims=bool(keepdims))
        return (np.asarray(mean).astype(data.dtype),)


class Shrink(op_shrink.Shrink):
    """It computes integers in double, which does not hold all of 64 bits."""

    def _run(self, x: Array, bias: float = 0.0, lambd: float = 0.5) -> tuple[Array]:
        if x.dtype.kind not in "iu" or bias != int(bias):
            found: tuple[Array] = super()._run(x, bias=bias, lambd=lambd)  # type: ignore[no-untyped-call]
            return found
        step = np.array(int(bias), x.dtype)
        return (np.where(x < -lambd, x + step, np.where(x > lambd, x - step, 0)).astype(x.dtype),)


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


class AveragePool(op_average_pool.AveragePool_19):
    """It takes pads axis by axis, and only those of two axes."""

    def _run(self, x: Array, count_include_pad: int = 0, **said: Any) -> tuple[Array]:  # type: ignore[override]
        counted = np.ones(x.shape, x.dtype)
        counts = _summed(counted, of_pads=float(bool(count_include_pad)), **said)
        with np.errstate(all="ignore"):
            return ((_summed(x, **said) / counts).astype(x.dtype),)


class LpPool(op_lp_pool.LpPool):
    """It takes pads axis by axis here, too."""

    def _run(self, x: Array, p: int = 2, **said: Any) -> tuple[Array]:  # type: ignore[override]
        return ((_summed(np.abs(x) ** p, **said) ** (1 / p)).astype(x.dtype),)


class Conv(op_conv.Conv):
    """It fills what lies between dilated weights with zeros, and of an infinity these make a NaN."""

    def _run(  # type: ignore[override]
        self, x: Array, w: Array, b: Array | None = None, group: int = 1, kernel_shape: Any = None, **said: Any
    ) -> tuple[Array]:
        if x.ndim < 3 or x.shape[1] != w.shape[1] * group or max(said.get("dilations") or [1]) == 1:
            plain: tuple[Array] = super()._run(x, w, b, group=group, kernel_shape=kernel_shape, **said)  # type: ignore[no-untyped-call]
            return plain
        windows = _windows(x, w.shape[2:], **said)
        outer, inner = np.split(np.arange(4, 2 * x.ndim), 2)
        places = [windows.shape[0], group, w.shape[1], *windows.shape[2:]]
        weights = w.reshape(group, -1, *w.shape[1:]).astype(np.float64)
        operands = windows.reshape(places), [0, 1, 2, *outer, *inner], weights, [1, 3, 2, *inner]
        with np.errstate(all="ignore"):
            summed = np.einsum(*operands, [0, 1, 3, *outer]).reshape(x.shape[0], w.shape[0], *windows.shape[2 : x.ndim])
            shift = 0 if b is None else b.reshape(-1, *[1] * (x.ndim - 2))
            return ((summed + shift).astype(x.dtype),)


class GridSample(op_grid_sample.GridSample):
    """It computes places in float32, of doubles too."""

    def _gs_denormalize_coordinates(self, n: Any, dims: Any, align_corners: bool) -> Array:
        n = np.asarray(n)
        places = zip(n.astype(np.result_type(n, np.float32)), dims, strict=True)
        return np.array([self._gs_denormalize(place, size, align_corners) for place, size in places])


class DeformConv(op_deform_conv.DeformConv):
    """It reads between pixels by GridSample, and so in float32, and divides by zero where there is one row or column.

    Source: https://onnx.ai/onnx/operators/onnx__DeformConv.html
    """

    def _run(
        self,
        x: Array,
        w: Array,
        offset: Array,
        b: Array | None = None,
        mask: Array | None = None,
        dilations: Any = None,
        group: int = 1,
        kernel_shape: Any = None,
        offset_group: int = 1,
        pads: Any = None,
        strides: Any = None,
    ) -> tuple[Array]:
        count, sizes = len(x), x.shape[2:]
        if len(sizes) != 2:
            raise NotImplementedError(f"DeformConv along {len(sizes)} axes")
        kernel, results = w.shape[2:], offset.shape[2:]
        data = x.reshape(count, offset_group, -1, *sizes).astype(np.float64)
        moved = offset.reshape(count, offset_group, *kernel, 2, *results).astype(np.float64)
        ways = zip(strides or (1, 1), dilations or (1, 1), pads or (0, 0, 0, 0), kernel, results, strict=False)
        rows, columns = (
            step * np.arange(many) - before + gap * np.arange(width)[:, None] for step, gap, before, width, many in ways
        )
        places = moved[:, :, :, :, 0] + rows[:, None, :, None], moved[:, :, :, :, 1] + columns[:, None, :]
        shares = 1.0 if mask is None else mask.reshape(count, offset_group, *kernel, *results)
        read = sum(_corner(data, places, sides) for sides in np.ndindex(2, 2)) * np.asarray(shares)[..., None]
        read = np.moveaxis(read, -1, 2).reshape(count, group, -1, *kernel, *results)
        weights = w.reshape(group, -1, *w.shape[1:]).astype(np.float64)
        summed = np.einsum("ngcijrs,gocij->ngors", read, weights).reshape(count, w.shape[0], *results)
        return ((summed + (0 if b is None else b.reshape(-1, 1, 1))).astype(x.dtype),)


def _corner(data: Array, places: tuple[Array, Array], sides: tuple[int, ...]) -> Array:
    """What one of the four pixels around each place gives to it, channels last; nothing from outside the data."""
    more = (1,) * (places[0].ndim - 2)
    numbers = np.arange(data.shape[0]).reshape(-1, 1, *more)
    groups = np.arange(data.shape[1]).reshape(1, -1, *more)
    inside, share, at = np.array(True), np.array(1.0), []
    for place, side, size in zip(places, sides, data.shape[-2:], strict=True):
        pixel = np.floor(place) + side
        inside = inside & (pixel >= 0) & (pixel < size)
        share = share * (1 - np.abs(place - pixel))
        at.append(np.where((pixel >= 0) & (pixel < size), pixel, 0).astype(np.int64))
    read = data[numbers, groups, :, at[0], at[1]]
    return np.where(inside[..., None], read * share[..., None], 0)


class LayerNormalization(op_layer_normalization.LayerNormalization):
    """It takes sums of squares of half precision in half precision, whatever `stash_type` says."""

    def _run(
        self, x: Array, w: Array, b: Array | None = None, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
    ) -> tuple[Array, ...]:
        inner, wide = tuple(range(axis % x.ndim, x.ndim)), _stashed(x, stash_type)
        mean = wide.mean(inner, keepdims=True)
        with np.errstate(all="ignore"):
            share = np.reciprocal(np.sqrt(np.square(wide - mean).mean(inner, keepdims=True) + epsilon))
            scaled = ((wide - mean) * share).astype(x.dtype) * w
            return ((scaled if b is None else scaled + b).astype(x.dtype), mean, share)


class RMSNormalization(op_rms_normalization.RMSNormalization):
    """So does this."""

    def _run(self, x: Array, w: Array, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1) -> tuple[Array]:
        inner, wide = tuple(range(axis % x.ndim, x.ndim)), _stashed(x, stash_type)
        with np.errstate(all="ignore"):
            found = wide / np.sqrt(np.square(wide).mean(inner, keepdims=True) + epsilon)
            return ((found.astype(x.dtype) * w).astype(x.dtype),)


def _stashed(x: Array, stash_type: int) -> Array:
    """The data as normalizations hold it: in float, or in double where it is double."""
    if stash_type != TensorProto.FLOAT:
        raise NotImplementedError(f"a stash_type of {stash_type}")
    return x.astype(np.result_type(x, np.float32))


class Split(op_split.Split_18):
    """It cuts what is there where the sizes are not those of an axis."""

    def _run(self, mat: Array, split: Any = None, axis: int | None = 0, num_outputs: int | None = None) -> Any:
        if split is not None and np.sum(split) != mat.shape[axis or 0]:
            raise ValueError(f"the sizes {list(split)} do not make up those {mat.shape[axis or 0]} along the axis")
        return super()._run(mat, split, axis or 0, num_outputs)  # type: ignore[no-untyped-call]


class Loop(op_loop.Loop):
    """It joins what every turn gives along an axis that this has, rather than along a new one."""

    def _run(  # type: ignore[override]
        self, m: Any, cond: Any, *carried: Any, context: Any = None, **said: Any
    ) -> tuple[Any, ...]:
        # Not every version gives bodies bindings.
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


def _along(scale: Array, shape: tuple[int, ...], axis: int, block_size: int | None) -> Array:
    """One scale for all, one for each place on an axis, or one for each block of places on it."""
    if scale.size == 1:
        return scale.reshape(())
    if block_size:
        return np.repeat(scale, block_size, axis).take(range(shape[axis]), axis)
    sizes = [1] * len(shape)
    sizes[axis] = -1
    return scale.reshape(sizes)


def _summed(x: Array, kernel_shape: Any = None, **said: Any) -> Array:
    """Sums over windows."""
    inside = _windows(x, kernel_shape, **said)
    return np.asarray(inside.sum(axis=tuple(range(-len(kernel_shape), 0)), dtype=np.float64))


def _windows(
    x: Array,
    kernel_shape: Any,
    auto_pad: str | None = "NOTSET",
    ceil_mode: int = 0,
    dilations: Any = None,
    pads: Any = None,
    strides: Any = None,
    of_pads: float = 0.0,
) -> Array:
    """What lies in each window, along the last axes, with a number in the place of pads and zeros beyond these.

    Source: https://onnx.ai/onnx/operators/onnx__AveragePool.html
    """
    rank, ones = len(kernel_shape), [1] * len(kernel_shape)
    sizes, steps, gaps = np.array(x.shape[2:]), np.array(strides or ones), np.array(dilations or ones)
    reach = (np.array(kernel_shape) - 1) * gaps + 1
    before, behind = np.array(pads or [0] * 2 * rank).reshape(2, rank)
    if auto_pad == "VALID":
        before, behind = before * 0, behind * 0
    elif auto_pad in ("SAME_LOWER", "SAME_UPPER"):
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
    return np.asarray(windows[(slice(None), slice(None), *taken, *(slice(None, None, gap) for gap in gaps))])


class Evaluator(ReferenceEvaluator):
    """The evaluator, with these operators in functions and graphs inside, too."""

    def __init__(self, proto: Any, *, new_ops: list[type[OpRun]] | None = None, **given: Any) -> None:
        super().__init__(proto, new_ops=new_ops or _RIGHT, **given)


_RIGHT: list[type[OpRun]] = [
    AveragePool,
    CenterCropPad,
    Clip,
    Conv,
    DeformConv,
    Gather,
    GatherElements,
    GridSample,
    LayerNormalization,
    LogSoftmax,
    Loop,
    LpPool,
    MaxPool,
    OneHot,
    Pow,
    QuantizeLinear,
    ReduceMean,
    RMSNormalization,
    Shrink,
    Split,
    Unsqueeze,
]
