"""Compare two values within the rounding of their element type."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tools.fuzz.values import is_exact_type

__all__ = ["difference"]

_TOLERANCE = {
    "float64": 1e-9, "float32": 1e-4, "float16": 8e-3, "bfloat16": 6e-2, "complex64": 1e-4, "complex128": 1e-9,
}  # fmt: skip
"""Tolerances of a type: relative to the number, and to 1, or to the largest number of the tensor if that is less."""

_LAST_OF_ONE = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
"""The distance from 1 to the next number of a type."""

_EIGHT_BITS = 0.26
"""One step of a float of eight bits or less."""


def difference(wanted: Any, got: Any, *, single: bool = False, near_zero: bool = False, relative: float = 0.0) -> str:
    """How two values differ, empty if they do not. A value is a tensor, a sequence of them, or None.

    Args:
        wanted: what the source computes.
        got: what the result does.
        single: whether doubles may be computed in single precision, as the specification's own bodies do.
        near_zero: whether results near 0 come from numbers around 1, and may be off by four times the ULP of 1.
        relative: a tolerance, if it is larger than that of the type.
    """
    if wanted is None or got is None:
        return "" if wanted is got else f"{got} instead of {wanted}"
    between = partial(difference, single=single, near_zero=near_zero, relative=relative)
    if isinstance(wanted, (list, tuple)) or isinstance(got, (list, tuple)):
        if not isinstance(wanted, (list, tuple)) or not isinstance(got, (list, tuple)) or len(wanted) != len(got):
            return f"{got} instead of {wanted}"
        return next(filter(None, map(between, wanted, got)), "")
    wanted, got = np.asarray(wanted), np.asarray(got)
    tolerance = max(_TOLERANCE.get(wanted.dtype.name, _EIGHT_BITS), _TOLERANCE["float32"] if single else 0.0, relative)
    least = 4 * _LAST_OF_ONE.get(wanted.dtype.name, 0.0) if near_zero else 0.0
    return _between_tensors(wanted, got, tolerance, least)


def _between_tensors(wanted: np.ndarray, got: np.ndarray, tolerance: float, least: float) -> str:
    if wanted.shape != got.shape:
        return f"shape {got.shape} instead of {wanted.shape}"
    if wanted.dtype.kind in "OUS" and got.dtype.kind in "OUS":
        same = [str(one) for one in wanted.ravel()] == [str(one) for one in got.ravel()]
        return "" if same else f"{_shown(got)} instead of {_shown(wanted)}"
    if wanted.dtype != got.dtype:
        return f"{got.dtype} instead of {wanted.dtype}"
    if is_exact_type(wanted.dtype):
        return "" if np.array_equal(wanted, got) else f"{_shown(got)} instead of {_shown(wanted)}"
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        one, other = wanted.astype(wide), got.astype(wide)
        finite = np.abs(one[np.isfinite(one)])
        scale = min(1.0, float(finite.max())) if finite.size else 1.0
        near = np.isfinite(one) & (np.abs(one - other) <= np.maximum(least, tolerance * (np.abs(one) + scale)))
        same = near | (one == other) | (np.isnan(one) & np.isnan(other))
    return "" if bool(np.all(same)) else f"{_shown(got)} instead of {_shown(wanted)}"


def _shown(array: np.ndarray) -> str:
    return " ".join(np.array2string(array.ravel()[:12], precision=9, threshold=12).split())
