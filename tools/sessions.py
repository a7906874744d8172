"""Sessions in which onnxruntime runs the nodes of a model as they are written, or optimizes them first."""

from __future__ import annotations

import onnxruntime
from onnx import ModelProto

__all__ = ["default_session", "unoptimized"]


def unoptimized(model: ModelProto) -> onnxruntime.InferenceSession:
    """A session on the CPU, without optimizations and in one thread."""
    return _session(model, onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)


def default_session(model: ModelProto) -> onnxruntime.InferenceSession:
    """The same with all optimizations, which are the default."""
    return _session(model, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL)


def _session(model: ModelProto, level: onnxruntime.GraphOptimizationLevel) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
