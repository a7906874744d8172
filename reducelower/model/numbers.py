"""Groups of element types, and values as arrays."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

__all__ = [
    "FIRST_FLOATS",
    "FLOATS",
    "HALVES",
    "SIGNED",
    "UNSIGNED",
    "Array",
    "value_key",
    "value_of_tensor",
]

Array: TypeAlias = NDArray[np.generic]

FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)
"""The float types that operators compute with; narrower ones are only stored."""

FIRST_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
"""The float types that operators took before bfloat16 was added."""

HALVES = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
"""The 16-bit float types."""

SIGNED = (TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64)
UNSIGNED = (TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64)


def value_of_tensor(tensor: TensorProto) -> Array | None:
    """The value of a tensor; None if its data is in another file or damaged."""
    if tensor.data_location == TensorProto.EXTERNAL:
        return None  # onnx would look for it in the current folder
    try:
        return numpy_helper.to_array(tensor)
    except Exception:  # numpy and onnx raise several types
        return None


def value_key(value: Array) -> Hashable:
    """A key that two arrays share exactly if element type, shape and bits are equal."""
    # dtype.name tells ml_dtypes types apart; dtype.str is "V1" for every one of one byte.
    content = tuple(value.reshape(-1).tolist()) if value.dtype.hasobject else value.tobytes()
    return value.dtype.name, value.shape, content
