"""onnxruntime-web: its WebAssembly kernels, run by Node.js with the package installed in the current folder.

The environment variable ORT_WEB_FOLDER names another folder whose ``node_modules`` has it. ORT_WEB_PROVIDER=webgpu runs
its WebGPU kernels, and those of WebAssembly for what they lack; Node.js needs the package webgpu for that. This file is
loaded as its neighbours are.
"""

from __future__ import annotations

import atexit
import base64
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["RUNTIMES"]

_started: list[subprocess.Popen[str]] = []


def _version() -> str:
    folder = Path(os.environ.get("ORT_WEB_FOLDER", "."))
    # Node.js looks for packages from the current folder on, unlike for a program in a file.
    program = Path(__file__).with_suffix(".js").read_text("utf-8")
    node = subprocess.Popen(
        ["node", "-e", program], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    atexit.register(node.kill)
    _started[:] = [node]
    first = _read(node)
    if first is None:
        raise ImportError("Node.js finds no package onnxruntime-web here; ORT_WEB_FOLDER names the folder that has it")
    return str(first["version"])


def _run(file: Path, inputs: dict[str, Any]) -> list[Any]:
    """Run a model in a session of its own."""
    (node,) = _started
    assert node.stdin is not None
    feeds = {
        name: {"type": value.dtype.name, "dims": value.shape, "data": _text(np.ascontiguousarray(value).tobytes())}
        for name, value in inputs.items()
    }
    node.stdin.write(json.dumps({"model": _text(file.read_bytes()), "inputs": feeds}) + "\n")
    node.stdin.flush()
    answer = _read(node)
    if answer is None:
        # End the worker as well, so that the next model gets a new one.
        os._exit(1)
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return [
        np.frombuffer(base64.b64decode(value["data"]), value["type"]).reshape(value["dims"])
        for value in answer["outputs"]
    ]


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _read(node: subprocess.Popen[str]) -> dict[str, Any] | None:
    """The next answer, or None if Node.js has ended; other output of the package is skipped."""
    assert node.stdout is not None
    return next((dict(json.loads(line)) for line in node.stdout if line.startswith("{")), None)


RUNTIMES = {"onnxruntime-web": (_run, _version, "")}
