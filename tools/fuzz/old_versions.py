"""Versions of operators below opset 7 in numpy, from their pages: the reference evaluator has only newer versions.

With them the reference can judge opset versions that no runtime reads any more. Each function has the inputs and the
attributes of its version.
Source: https://onnx.ai/onnx/operators/, the page of each operator at the version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
from onnx import TensorProto, helper
from onnx.reference.op_run import OpRun

from reducelower.model.schemas import schema

__all__ = ["old_operators"]

_Meaning = Callable[..., Any]
"""A function from inputs and attributes to the output, or to a tuple of all outputs."""


def _aligned(a: np.ndarray, b: np.ndarray, broadcast: int, axis: int | None) -> np.ndarray:
    """The second operand with ones added to its shape, so that its first dimension aligns with `axis` of the first."""
    if not broadcast or b.ndim >= a.ndim:
        return b
    start = a.ndim - b.ndim if axis is None else axis % a.ndim
    return b.reshape(b.shape + (1,) * (a.ndim - start - b.ndim))


def _binary(compute: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> _Meaning:
    def meaning(a: np.ndarray, b: np.ndarray, broadcast: int = 0, axis: int | None = None, **_: Any) -> np.ndarray:
        return compute(a, _aligned(a, b, broadcast, axis))

    return meaning


def _divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Whole numbers are rounded toward zero."""
    return np.trunc(a / b).astype(a.dtype) if a.dtype.kind in "iu" else a / b


def _gemm(a: np.ndarray, b: np.ndarray, c: np.ndarray, alpha: float, beta: float, **rest: Any) -> np.ndarray:
    left, right = (one.T if rest.get(name) else one for one, name in ((a, "transA"), (b, "transB")))
    return (alpha * (left @ right) + beta * c).astype(a.dtype)


def _clip(x: np.ndarray, min: float | None = None, max: float | None = None, **_: Any) -> np.ndarray:  # noqa: A002
    bounded = x if min is None else np.maximum(x, np.asarray(min).astype(x.dtype))
    return bounded if max is None else np.minimum(bounded, np.asarray(max).astype(x.dtype))


def _cast(x: np.ndarray, to: str) -> np.ndarray:
    return x.astype(helper.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(to)))


def _dropout(x: np.ndarray, is_test: int = 1, **_: Any) -> np.ndarray:
    """Outside of training."""
    if not is_test:
        raise NotImplementedError("training is random")
    return x


def _batch_normalization(
    x: np.ndarray, scale: np.ndarray, bias: np.ndarray, mean: np.ndarray, variance: np.ndarray, **rest: Any
) -> np.ndarray:
    """Outside of training, with parameters per channel, or per element of an instance."""
    if not rest.get("is_test", 1):
        axes = (0, *range(2, x.ndim))
        mean, variance = x.mean(axis=axes), x.var(axis=axes)
    shape = (-1, *(1,) * (x.ndim - 2)) if rest.get("spatial", 1) else x.shape[1:]
    s, b, m, v = (one.astype(np.float64).reshape(shape) for one in (scale, bias, mean, variance))
    return ((x.astype(np.float64) - m) / np.sqrt(v + rest["epsilon"]) * s + b).astype(x.dtype)


def _prelu(x: np.ndarray, slope: np.ndarray, **_: Any) -> np.ndarray:
    """There is one slope for all channels, or one per channel."""
    spread = slope.reshape(-1, *(1,) * (x.ndim - 2)) if slope.size > 1 else slope
    return np.where(x < 0, x * spread, x).astype(x.dtype)


def _global_lp_pool(x: np.ndarray, p: float = 2) -> np.ndarray:
    powers = np.abs(x.astype(np.float64)) ** float(p)
    return (powers.sum(axis=tuple(range(2, x.ndim)), keepdims=True) ** (1 / float(p))).astype(x.dtype)


def _selu(x: np.ndarray, alpha: float, gamma: float, **_: Any) -> np.ndarray:
    wide = x.astype(np.float64)
    return (gamma * np.where(wide > 0, wide, alpha * np.expm1(np.minimum(wide, 0)))).astype(x.dtype)


def _tile(x: np.ndarray, tiles: np.ndarray, axis: np.ndarray) -> np.ndarray:
    return np.concatenate([x] * int(tiles.reshape(())), axis=int(axis.reshape(())))


def _reshape(x: np.ndarray, shape: list[int], **_: Any) -> np.ndarray:
    return x.reshape([x.shape[at] if size == 0 else size for at, size in enumerate(shape)])


def _split(x: np.ndarray, sizes: np.ndarray | None = None, *, outputs: int, **how: Any) -> tuple[np.ndarray, ...]:
    """Sizes are an input or an attribute; without them the parts are equal."""
    axis = how.get("axis") or 0
    lengths = how.get("split") if sizes is None else sizes.astype(np.int64)
    lengths = [x.shape[axis] // outputs] * outputs if lengths is None else lengths
    return tuple(np.split(x, np.cumsum(lengths)[:-1], axis))


_BROADCASTING: Mapping[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": _divide, "Pow": np.power, "And": np.logical_and,
    "Or": np.logical_or, "Xor": np.logical_xor, "Equal": np.equal, "Less": np.less, "Greater": np.greater,
}  # fmt: skip

_MEANINGS: tuple[tuple[str, int, _Meaning], ...] = (
    *((op_type, 6, _binary(compute)) for op_type, compute in _BROADCASTING.items()),
    ("Gemm", 6, _gemm),
    ("Clip", 6, _clip),
    ("Cast", 5, _cast),
    ("Dropout", 6, _dropout),
    ("BatchNormalization", 6, _batch_normalization),
    ("PRelu", 6, _prelu),
    ("GlobalLpPool", 6, _global_lp_pool),
    ("Selu", 5, _selu),
    ("Tile", 5, _tile),
    ("Reshape", 4, _reshape),
    ("Split", 1, _split),
)
"""Operator, last opset version, and its function."""


@cache
def old_operators(opset: int) -> tuple[type[OpRun], ...]:
    """The operators of an opset version below 7 for which the reference lacks the version, or uses a wrong one."""
    return tuple(_class(op_type, opset, meaning) for op_type, last, meaning in _MEANINGS if opset <= last)


def _class(op_type: str, opset: int, meaning: _Meaning) -> type[OpRun]:
    def run(self: OpRun, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        if op_type == "Split":
            attributes["outputs"] = len(self.onnx_node.output)
        outputs = meaning(*inputs, **attributes)
        return outputs[: len(self.onnx_node.output)] if isinstance(outputs, tuple) else (np.asarray(outputs),)

    return type(op_type, (OpRun,), {"op_domain": "", "op_schema": schema(op_type, opset), "_run": run})
