"""Claims about every conversion: it is refused, or valid and equal to its source."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, TensorProto, checker, helper
from onnx.reference import ReferenceEvaluator

from reducelower.model.schemas import opset_of
from tools.sessions import unoptimized

__all__ = ["check_equal", "is_valid", "results"]

_OLDEST, _NEWEST = 7, 26
_NOT_THERE = ("NOT_IMPLEMENTED", "NotImplemented", "is not supported", "is invalid", "Could not find an implementation")
_BRANCHES = "pre-allocated output OrtValues"
"""Before opset 11, branches needed one shape; if only the run shows that they differ, it fails."""


def is_valid(model: ModelProto) -> bool:
    """Whether the checker accepts a model, including shape inference."""
    try:
        checker.check_model(model, full_check=True)
    except Exception:  # the checker raises several kinds of its own
        return False
    return True


def results(model: ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray] | None:
    """The outputs of a model by onnxruntime, or else by onnx's reference; None if neither runs it."""
    opset = opset_of(model)
    # onnxruntime gives wrong shapes and numbers for some reductions of empty tensors.
    for_reference = any(
        value.dtype.name == "bfloat16" or not (value.size or value.dtype == np.int64) for value in feeds.values()
    )
    if _OLDEST <= opset <= _NEWEST and not for_reference:
        try:
            return list(unoptimized(model).run(None, feeds))
        except Exception as error:
            if _BRANCHES in str(error) and opset < 11:
                return None
            if not any(phrase in f"{type(error).__name__} {error}" for phrase in _NOT_THERE):
                raise
    if b"Loop" in model.SerializeToString():  # the reference concatenates where it should stack
        return None
    try:
        outputs = ReferenceEvaluator(model).run(None, feeds)
    except Exception:
        return None
    # The reference lets numpy widen sums of small integers.
    types = [helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type) for value in model.graph.output]
    return [np.asarray(value).astype(dtype) for value, dtype in zip(outputs, types, strict=True)]


_TOLERANCE = {
    TensorProto.FLOAT: 1e-4, TensorProto.DOUBLE: 1e-6, TensorProto.FLOAT16: 2e-2, TensorProto.BFLOAT16: 1e-1,
}  # fmt: skip


def check_equal(left: list[np.ndarray], right: list[np.ndarray]) -> None:
    """Fail where two models give different shapes, element types or numbers."""
    assert len(left) == len(right)
    for ours, theirs in zip(left, right, strict=True):
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
        tolerance = _TOLERANCE.get(helper.np_dtype_to_tensor_dtype(ours.dtype), 0)
        a, b = (
            value.astype(np.float64) if value.dtype.name == "bfloat16" or value.dtype.kind == "f" else value
            for value in (ours, theirs)
        )
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
