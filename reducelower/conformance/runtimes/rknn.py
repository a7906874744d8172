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
"""What the compiler says of an operator that the NPU's runtime lacks; it builds the model all the same, and the
simulator, which computes everything on the PC, runs it."""


def run(model: bytes, inputs: dict[str, Any]) -> list[Any]:
    """Load, build and simulate a model."""
    import numpy as np
    from rknn.api import RKNN

    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as held:
        file = Path(folder, "model.onnx")
        file.write_bytes(model)
        npu = RKNN(verbose=False)
        held.callback(npu.release)
        _succeeds(npu.config(target_platform=_PLATFORM), "config")
        _succeeds(npu.load_onnx(model=str(file)), "load_onnx")
        with _listening() as said:
            _succeeds(npu.build(do_quantization=False), "build")
            ctypes.CDLL(None).fflush(None)
            said.seek(0)
            missing = sorted({name.decode() for name in _NOT_LOWERED.findall(said.read())})
        if missing:
            raise RuntimeError(f"no lowering found for {', '.join(missing)}")
        _succeeds(npu.init_runtime(), "init_runtime")
        # The layout is asked of every input and heeded where there are four dimensions.
        values = [np.ascontiguousarray(value) for value in inputs.values()]
        results = npu.inference(inputs=values, data_format=["nchw"] * len(values))
        if results is None:
            raise RuntimeError("inference gave no outputs")
        return [np.array(value) for value in results]


@contextlib.contextmanager
def _listening() -> Iterator[IO[bytes]]:
    """A file of what is printed on either stream, by native code too."""
    kept = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as said:
        for stream in (1, 2):
            os.dup2(said.fileno(), stream)
        try:
            yield said
        finally:
            for stream, before in zip((1, 2), kept, strict=True):
                os.dup2(before, stream)
                os.close(before)


def _succeeds(status: int, step: str) -> None:
    if status:
        raise RuntimeError(f"RKNN-Toolkit2: {step} failed with status {status}")
