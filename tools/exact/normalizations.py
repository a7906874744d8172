"""Normalizations in exact arithmetic: tensors of decimals, with quotients and roots to 60 digits.

The meaning is that of the operators' pages at opset 23 (https://onnx.ai/onnx/operators), for finite data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal, localcontext
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["NORMALIZATIONS", "exact_normalization"]

Exact = npt.NDArray[np.object_]
"""A tensor of decimals."""

_DIGITS = Context(prec=60, Emax=999999, Emin=-999999, traps=[])
_ALL_DIGITS = Context(prec=1200, Emax=999999, Emin=-999999, traps=[])
"""Enough for the mean of doubles, and for a large number minus a mean that is nearly as large."""

_LEAST = Decimal(-100000)
"""Below this, the exponential is zero in every element type."""


def exact_normalization(
    op_type: str, inputs: Sequence[npt.NDArray[Any] | None], attributes: Mapping[str, Any]
) -> Exact:
    """The exact first output of a node, from finite inputs of any float type (None: absent)."""
    with localcontext(_DIGITS):
        exact = [None if value is None else _exact(value) for value in inputs]
        return np.asarray(_FUNCTIONS[op_type](*exact, **attributes), dtype=object)


def _exact(value: npt.NDArray[Any]) -> Exact:
    wide = value.astype(np.float64)
    return np.array([Decimal(number) for number in wide.ravel().tolist()], dtype=object).reshape(value.shape)


def _each(function: Callable[[Decimal], Decimal]) -> Callable[[Any], Any]:
    return np.vectorize(function, otypes=[object])


_root = _each(Decimal.sqrt)
_log = _each(Decimal.ln)
_exp = _each(lambda number: number.exp() if number > _LEAST else Decimal(0))


def _mean(x: Exact, axes: Sequence[int]) -> Any:
    return x.sum(axis=tuple(axes), keepdims=True) / Decimal(math.prod(x.shape[axis] for axis in axes))


def _standard(x: Exact, axes: Sequence[int], epsilon: float) -> Any:
    deviation = _deviation(x, axes)
    return deviation / _root(_mean(deviation * deviation, axes) + Decimal(epsilon))


def _deviation(x: Exact, axes: Sequence[int]) -> Any:
    with localcontext(_ALL_DIGITS):
        return x - _mean(x, axes)


def _from(axis: int, x: Exact) -> range:
    return range(axis % x.ndim, x.ndim)


def _layer(x: Exact, scale: Exact, bias: Exact | None = None, *, axis: int, epsilon: float) -> Any:
    scaled = _standard(x, _from(axis, x), epsilon) * scale
    return scaled if bias is None else scaled + bias


def _rms(x: Exact, scale: Exact, *, axis: int, epsilon: float) -> Any:
    return x / _root(_mean(x * x, _from(axis, x)) + Decimal(epsilon)) * scale


def _by_channel(vector: Exact, rank: int) -> Any:
    return vector.reshape(-1, *(1,) * (rank - 2))


def _group(x: Exact, scale: Exact, bias: Exact, *, num_groups: int, epsilon: float) -> Any:
    normal = _standard(x.reshape(x.shape[0], num_groups, -1), [2], epsilon).reshape(x.shape)
    return normal * _by_channel(scale, x.ndim) + _by_channel(bias, x.ndim)


def _instance(x: Exact, scale: Exact, bias: Exact, *, epsilon: float) -> Any:
    return _standard(x, range(2, x.ndim), epsilon) * _by_channel(scale, x.ndim) + _by_channel(bias, x.ndim)


def _mean_variance(x: Exact, *, axes: Sequence[int]) -> Any:
    deviation = _deviation(x, axes)
    # The operator's own epsilon is a float32.
    return deviation / (_root(_mean(deviation * deviation, axes)) + Decimal(float(np.float32(1e-9))))


def _power_root(x: Exact, axes: Sequence[int], p: int) -> Any:
    total = (abs(x) ** p).sum(axis=tuple(axes), keepdims=True)
    return _each(lambda number: number ** (Decimal(1) / p) if number else Decimal(0))(total)


def _lp(x: Exact, *, axis: int, p: int) -> Any:
    norm = _power_root(x, [axis], p)
    return x / _each(lambda number: number or Decimal(1))(norm)


def _softmax(x: Exact, *, axis: int) -> Any:
    exponential = _exp(x - x.max(axis=axis, keepdims=True))
    return exponential / exponential.sum(axis=axis, keepdims=True)


def _log_softmax(x: Exact, *, axis: int) -> Any:
    difference = x - x.max(axis=axis, keepdims=True)
    return difference - _log(_exp(difference).sum(axis=axis, keepdims=True))


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "GlobalAveragePool": lambda x: _mean(x, range(2, x.ndim)),
    "GlobalLpPool": lambda x, p: _power_root(x, range(2, x.ndim), p),
    "GlobalMaxPool": lambda x: x.max(axis=tuple(range(2, x.ndim)), keepdims=True),
    "GroupNormalization": _group,
    "InstanceNormalization": _instance,
    "LayerNormalization": _layer,
    "LogSoftmax": _log_softmax,
    "LpNormalization": _lp,
    "MeanVarianceNormalization": _mean_variance,
    "RMSNormalization": _rms,
    "Softmax": _softmax,
}

NORMALIZATIONS = frozenset(_FUNCTIONS)
"""The supported operators: normalizations, and global pooling, which is a reduction as well."""
