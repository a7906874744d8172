"""jaxonnxruntime: the model as a JAX function, with 64-bit types on."""

from __future__ import annotations

from typing import Any

PACKAGE = "jaxonnxruntime"
MODULES = ("jax", "jaxonnxruntime.call_onnx")


def run(model: bytes, inputs: dict[str, Any]) -> list[Any]:
    """Convert and run a model."""
    import jax
    import numpy as np
    import onnx
    from jaxonnxruntime import call_onnx

    jax.config.update("jax_enable_x64", True)
    read = onnx.load_from_string(model)
    function, constants = call_onnx.call_onnx_model(read, inputs)
    results = function(constants, inputs)
    return [np.asarray(value) for value in (results if isinstance(results, (tuple, list)) else [results])]
