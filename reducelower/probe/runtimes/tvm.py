"""Apache TVM through its Relax importer, compiled with LLVM for the CPU."""

from __future__ import annotations

from typing import Any

__all__ = ["run", "version"]


def version() -> str:
    """The version installed."""
    from importlib.metadata import version as installed

    return installed("apache-tvm")


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
    several = hasattr(results, "__len__") and not hasattr(results, "numpy")
    return [result.numpy() for result in (results if several else [results])]
