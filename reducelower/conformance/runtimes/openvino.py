"""OpenVINO on the CPU, with float32 kept float32 (on some processors it would compute in bfloat16)."""

from __future__ import annotations

import io
from typing import Any

__all__ = ["run", "version"]


def version() -> str:
    """The version installed, without the build."""
    import openvino

    return str(openvino.get_version()).split("-")[0]


def run(model: bytes, inputs: dict[str, Any]) -> list[Any]:
    """Compile and run a model."""
    import numpy as np
    import openvino

    core = openvino.Core()
    compiled = core.compile_model(core.read_model(io.BytesIO(model)), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    # A graph input that nothing uses is dropped, and feeding it would be an error.
    known = {name for port in compiled.inputs for name in port.get_names()}
    results = compiled({name: value for name, value in inputs.items() if name in known})
    return [np.array(results[port]) for port in compiled.outputs]
