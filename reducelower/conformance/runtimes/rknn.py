"""Rockchip's NPUs: RKNN-Toolkit2's compiler without quantization, and its simulator on a PC."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

PACKAGE = "rknn-toolkit2"
MODULES = ("rknn.api",)

TOLERANCE = 4e-3
"""It computes in float16."""

_PLATFORM = "rk3588"

_NOT_LOWERED = re.compile(rb"No lowering found for: [^,]*, node type = (\w+)")
"""The compiler's message about an operator that the NPU's runtime lacks. It builds the model nevertheless, and the
simulator runs it, since it computes everything on the PC."""


def run(model: bytes, inputs: dict[str, Any]) -> list[Any]:
    """Load, build and simulate a model."""
    import numpy as np
    from rknn.api import RKNN

    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        file = Path(folder, "model.onnx")
        file.write_bytes(model)
        npu = RKNN(verbose=False)
        stack.callback(npu.release)
        _check(npu.config(target_platform=_PLATFORM), "config")
        _check(npu.load_onnx(model=str(file)), "load_onnx")
        with _captured_output() as output:
            _check(npu.build(do_quantization=False), "build")
            ctypes.CDLL(None).fflush(None)
            output.seek(0)
            missing = sorted({name.decode() for name in _NOT_LOWERED.findall(output.read())})
        if missing:
            raise RuntimeError(f"no lowering found for {', '.join(missing)}")
        _check(npu.init_runtime(), "init_runtime")
        # The layout is required for every input, and used for inputs with four dimensions.
        values = [np.ascontiguousarray(value) for value in inputs.values()]
        results = npu.inference(inputs=values, data_format=["nchw"] * len(values))
        if results is None:
            raise RuntimeError("inference gave no outputs")
        return [np.array(value) for value in results]


@contextlib.contextmanager
def _captured_output() -> Iterator[IO[bytes]]:
    """A file with everything printed to stdout or stderr, also by native code."""
    originals = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as output:
        for stream in (1, 2):
            os.dup2(output.fileno(), stream)
        try:
            yield output
        finally:
            for stream, original in zip((1, 2), originals, strict=True):
                os.dup2(original, stream)
                os.close(original)


def _check(status: int, step: str) -> None:
    if status:
        raise RuntimeError(f"RKNN-Toolkit2: {step} failed with status {status}")
