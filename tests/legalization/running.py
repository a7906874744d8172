"""Running small models: onnxruntime where it can, else onnx's reference evaluator."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

from tests.adapters.models import run as run_as_written

_UNSIGNED = (np.uint32, np.uint64)


def run(model: ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The model's outputs; nothing is optimized, so that every node runs as written."""
    opset = next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    if not 7 <= opset <= 26 or any(
        value.dtype in _UNSIGNED or value.dtype.name == "bfloat16" for value in feeds.values()
    ):
        return [np.asarray(value) for value in ReferenceEvaluator(model).run(None, feeds)]
    return run_as_written(model, feeds)
