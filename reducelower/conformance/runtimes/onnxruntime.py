"""onnxruntime on the CPU, as it comes."""

from __future__ import annotations

import inspect
from typing import Any


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
    # Up to release 1.2 there are no providers to choose from.
    choice = {"providers": ["CPUExecutionProvider"]} if _chooses(onnxruntime) else {}
    session = onnxruntime.InferenceSession(model, options, **choice)
    return list(session.run(None, inputs))


def _chooses(onnxruntime: Any) -> bool:
    return "providers" in inspect.signature(onnxruntime.InferenceSession.__init__).parameters
