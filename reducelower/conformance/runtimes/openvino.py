"""OpenVINO on the CPU, with float32 kept float32 (on some processors it would compute in bfloat16)."""

from __future__ import annotations

from typing import Any


def version() -> str:
    """The version installed, without the build."""
    return str(_module().get_version()).split("-")[0]


def run(model: bytes, inputs: dict[str, Any]) -> list[Any]:
    """Compile and run a model."""
    import numpy as np

    core = _module().Core()
    compiled = core.compile_model(core.read_model(model, b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    # A graph input that nothing uses is dropped, and feeding it would be an error.
    known = {name for port in compiled.inputs for name in port.get_names()}
    results = compiled({name: value for name, value in inputs.items() if name in known})
    return [np.array(results[port]) for port in compiled.outputs]


def _module() -> Any:
    """The module with its classes; up to release 2023.0 it was inside the package."""
    import openvino

    if hasattr(openvino, "Core"):
        return openvino
    import openvino.runtime

    return openvino.runtime
