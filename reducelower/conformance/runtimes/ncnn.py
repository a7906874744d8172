"""ncnn: converted by pnnx in full precision and run on the CPU."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

PACKAGE = "ncnn"
MODULES = ("ncnn", "pnnx")

_WITH_BATCH = 233
"""The value with which ncnn's Python binding keeps the first dimension, as in code that pnnx generates."""


def run(model: bytes, inputs: dict[str, Any]) -> list[Any]:
    """Convert and run a model."""
    import ncnn
    import numpy as np
    import onnx
    import pnnx

    graph = onnx.load_from_string(model).graph
    results = []
    with tempfile.TemporaryDirectory() as folder, ncnn.Net() as network:
        Path(folder, "model.onnx").write_bytes(model)
        done = subprocess.run([pnnx.EXEC_PATH, "model.onnx", "fp16=0"], cwd=folder, capture_output=True, check=False)
        written = Path(folder, "model.ncnn.param")
        if done.returncode or not written.exists():
            status = f"crashed with signal {-done.returncode}" if done.returncode < 0 else "wrote no network"
            raise RuntimeError(f"pnnx {status}")
        _succeeds(network.load_param(str(written)), "load_param")
        _succeeds(network.load_model(str(written.with_suffix(".bin"))), "load_model")
        with network.create_extractor() as extractor:
            for at, value in enumerate(graph.input):
                extractor.input(f"in{at}", ncnn.Mat(inputs[value.name], batch_index=_WITH_BATCH).clone())
            for at in range(len(graph.output)):
                status, output = extractor.extract(f"out{at}")
                _succeeds(status, "extract")
                results.append(np.array(output.numpy(batch_index=_WITH_BATCH)))
    return results


def _succeeds(status: int, step: str) -> None:
    if status:
        raise RuntimeError(f"ncnn: {step} failed with status {status}")
