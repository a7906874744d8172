"""Sessions in which onnxruntime runs the nodes of a model as they are written."""

from __future__ import annotations

import onnxruntime
from onnx import ModelProto

__all__ = ["unoptimized"]


def unoptimized(model: ModelProto) -> onnxruntime.InferenceSession:
    """A session on the CPU, without optimizations and in one thread."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
