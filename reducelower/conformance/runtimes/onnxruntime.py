"""onnxruntime on the CPU, as it comes."""

from __future__ import annotations

from typing import Any

__all__ = ["run", "version"]


def version() -> str:
    """The version installed."""
    import onnxruntime

    return str(onnxruntime.__version__)


def run(model: bytes, inputs: dict[str, Any]) -> list[Any]:
    """Run a model with the default optimizations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return list(session.run(None, inputs))
