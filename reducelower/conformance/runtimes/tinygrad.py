"""tinygrad on the CPU; its CPU device needs clang."""

from __future__ import annotations

import os
from typing import Any

PACKAGE = "tinygrad"
MODULES = ("tinygrad.nn.onnx",)

os.environ.setdefault("DEV", "CPU")


def run(model: bytes, inputs: dict[str, Any]) -> list[Any]:
    """Run a model."""
    import tempfile

    import numpy as np
    from tinygrad.nn.onnx import OnnxRunner

    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        file.write(model)
        file.flush()
        results = OnnxRunner(file.name)(inputs)
    # Sizes and shapes come as Python's own numbers.
    return [value.numpy() if hasattr(value, "numpy") else np.asarray(value) for value in results.values()]
