"""pnnx: the model as PyTorch code, which is run on the CPU."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

PACKAGE = "pnnx"
MODULES = ("pnnx", "torch")


def run(model: bytes, inputs: dict[str, Any]) -> list[Any]:
    """Convert and run a model."""
    import onnx
    import torch

    graph = onnx.load_from_string(model).graph
    with tempfile.TemporaryDirectory() as folder:
        network = _converted(model, folder).Model()
        network.eval()
        with torch.no_grad():
            results = network(*(torch.from_numpy(inputs[value.name]) for value in graph.input))
        return [value.numpy() for value in (results if isinstance(results, (tuple, list)) else [results])]


def _converted(model: bytes, folder: str) -> Any:
    """Convert in a folder, with pnnx's own program, and import the Python module that it writes there."""
    import pnnx

    Path(folder, "model.onnx").write_bytes(model)
    done = subprocess.run([pnnx.EXEC_PATH, "model.onnx", "fp16=0"], cwd=folder, capture_output=True, check=False)
    written = Path(folder, "model_pnnx.py")
    if done.returncode or not written.exists():
        status = f"crashed with signal {-done.returncode}" if done.returncode < 0 else "wrote no code"
        raise RuntimeError(f"pnnx {status}")
    # The code opens its weights by a bare file name.
    os.chdir(folder)
    spec = importlib.util.spec_from_file_location("model_pnnx", written)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
