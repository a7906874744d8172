"""Values of every element type: ordinary ones on which all runtimes agree, and edge values."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

__all__ = ["ELEMENT_TYPES", "draw_values", "dtype_of", "is_exact_type", "type_string"]

ELEMENT_TYPES = {
    "float": 10, "double": 3, "float16": 3, "bfloat16": 1, "int64": 3, "int32": 2, "int16": 1, "int8": 1, "uint8": 2,
    "uint16": 1, "uint32": 1, "uint64": 1, "bool": 2, "string": 1, "complex64": 0.5, "complex128": 0.3,
    "float8e4m3fn": 0.5, "float8e5m2": 0.5, "float8e4m3fnuz": 0.2, "float8e5m2fnuz": 0.2, "int4": 0.5, "uint4": 0.5,
    "float4e2m1": 0.2, "int2": 0.2, "uint2": 0.2,
}  # fmt: skip
"""Element types by their names in schemas, and how often each is drawn if an operator accepts it."""

_WORDS = ("", "a", "b", "ab", "b a", "Ä", "1.5", "x,y,z")


def dtype_of(element_type: int) -> np.dtype:
    """The numpy type that holds an ONNX element type."""
    return np.dtype(helper.tensor_dtype_to_np_dtype(element_type))


def type_string(array: np.ndarray) -> str:
    """The type of an array as schemas write it, such as ``tensor(float)``."""
    if array.dtype.kind in "OUS":
        return "tensor(string)"
    return f"tensor({TensorProto.DataType.Name(helper.np_dtype_to_tensor_dtype(array.dtype)).lower()})"


def is_exact_type(dtype: np.dtype) -> bool:
    """Whether a type is for integers, bools or strings, which are compared without tolerance."""
    return dtype.kind in "biuOUS" or dtype.name in ("int4", "uint4", "int2", "uint2")


def draw_values(
    rng: np.random.Generator, element_type: int, shape: tuple[int, ...], *, edge: bool, sums: bool = False
) -> np.ndarray:
    """An array of an element type and shape.

    Ordinary floats are multiples of 1/8 between -3 and 3, so that ties occur and most sums are exact. Edge values mix
    ordinary ones with zeros of both signs, infinities, NaN, and the largest, smallest and least normal numbers. The
    largest are left out for operators that sum, where the result depends on the order.
    """
    dtype = dtype_of(element_type)
    if element_type == TensorProto.STRING:
        return np.array(rng.choice(_WORDS, shape), dtype=object).reshape(shape)
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, shape)).astype(bool).reshape(shape)
    if dtype.kind == "c":
        parts = [rng.integers(-24, 25, shape) / 8 for _ in range(2)]
        return np.asarray(parts[0] + 1j * parts[1]).astype(dtype).reshape(shape)
    if is_exact_type(dtype):
        limits = ml_dtypes.iinfo(dtype) if dtype.name in ("int4", "uint4", "int2", "uint2") else np.iinfo(dtype)
        ordinary = np.asarray(rng.integers(max(int(limits.min), -5), min(int(limits.max), 9) + 1, shape)).astype(dtype)
        extremes = [limits.min, limits.max, 0, 1]
    else:
        ordinary = np.asarray(rng.integers(-24, 25, shape) / 8).astype(dtype)
        info = ml_dtypes.finfo(dtype)
        extremes = [info.smallest_normal, 0.0, -0.0, 0.5, -1.5, 2.5] + ([] if sums else [info.max, info.min])
        if dtype.name not in ("float8_e4m3fn", "float4_e2m1fn", "float8_e4m3fnuz", "float8_e5m2fnuz"):
            extremes += [np.inf, -np.inf, np.nan]
    ordinary = ordinary.reshape(shape)
    if not edge:
        return ordinary
    special = np.array([dtype.type(value) for value in extremes], dtype)
    chosen = np.asarray(special[rng.integers(0, len(special), shape)]).reshape(shape)
    return np.where(np.asarray(rng.random(shape) < 0.4), chosen, ordinary).astype(dtype).reshape(shape)
