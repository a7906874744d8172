"""The ends of what an element type holds."""

from __future__ import annotations

from typing import Any

import ml_dtypes
from onnx import TensorProto, helper

__all__ = ["FLOATS", "SIGNED", "UNSIGNED", "largest_finite"]

FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)
"""The floats that operators compute with; narrower ones are only stored."""

SIGNED = (TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64)
UNSIGNED = (TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64)


def largest_finite(element_type: int) -> float:
    """The largest finite number of a float type (`TensorProto.DataType`)."""
    info: Any = ml_dtypes.finfo(helper.tensor_dtype_to_np_dtype(element_type))  # type: ignore[no-untyped-call]
    return float(info.max)
