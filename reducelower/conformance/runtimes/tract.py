"""tract, Sonos's runtime in Rust, through its Python binding."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

__all__ = ["run", "version"]


def version() -> str:
    """The version installed."""
    import tract

    return str(tract.version())


def run(model: bytes, inputs: dict[str, Any]) -> list[Any]:
    """Load, optimize and run a model."""
    import numpy as np
    import tract

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "model.onnx")
        file.write_bytes(model)
        loaded = tract.onnx().load(str(file))
    results = loaded.into_model().into_runnable().run(list(inputs.values()))
    return [np.array(value.to_numpy()) for value in results]
