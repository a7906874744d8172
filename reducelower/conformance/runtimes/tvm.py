"""Apache TVM through its Relax importer, compiled with LLVM for the CPU."""

from __future__ import annotations

from typing import Any

PACKAGE = "apache-tvm"
MODULES = ("tvm.relax.frontend.onnx",)


def run(model: bytes, inputs: dict[str, Any]) -> list[Any]:
    """Import, compile and run a model."""
    import onnx
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    read = onnx.load_from_string(model)
    module = from_onnx(read, keep_params_in_input=False)
    module = relax.transform.DecomposeOpsForInference()(module)
    module = relax.transform.LegalizeOps()(module)
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    names = [value.name for value in read.graph.input]
    results = machine["main"](*(tvm.runtime.tensor(inputs[name]) for name in names))
    return [_array(result) for result in ([results] if len(read.graph.output) == 1 else results)]


def _array(result: Any) -> Any:
    """A tensor, or a shape, which TVM has as numbers of its own."""
    import numpy as np

    return result.numpy() if hasattr(result, "numpy") else np.array([int(size) for size in result], np.int64)
