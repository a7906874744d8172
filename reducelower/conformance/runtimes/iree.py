"""IREE: imported with iree-import-onnx, compiled for the CPU, run by its runtime."""

from __future__ import annotations

import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

PACKAGE = "iree-base-compiler"
MODULES = ("iree.runtime", "iree.compiler.tools.import_onnx.__main__")


def run(model: bytes, inputs: dict[str, Any]) -> list[Any]:
    """Import and compile a model with IREE's own programs and run it in this process."""
    import iree.runtime
    import numpy as np
    import onnx
    from iree.compiler.tools.import_onnx import __main__ as importer

    graph = onnx.load_from_string(model).graph
    with tempfile.TemporaryDirectory() as folder:
        source, imported, compiled = (Path(folder, name) for name in ("model.onnx", "model.mlir", "model.vmfb"))
        source.write_bytes(model)
        if importer.main(importer.parse_arguments([str(source), "-o", str(imported)])):
            raise RuntimeError("iree-import-onnx failed")
        program = str(Path(sysconfig.get_path("scripts"), "iree-compile"))
        flags = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
        # By default double is demoted to float, and double inputs are then refused.
        flags += ["--iree-llvmcpu-target-cpu=generic", "--iree-input-demote-f64-to-f32=false"]
        _call([program, *flags, str(imported), "-o", str(compiled)])
        config = iree.runtime.Config("local-sync")
        context = iree.runtime.SystemContext(config=config)
        context.add_vm_module(iree.runtime.VmModule.copy_buffer(context.instance, compiled.read_bytes()))
        function = context.modules.module[graph.name]
        results = function(*(inputs[value.name] for value in graph.input))
        return [np.array(value) for value in (results if isinstance(results, (tuple, list)) else [results])]


def _call(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error:" in line.lower()]
        status = f"crashed with signal {-done.returncode}" if done.returncode < 0 else "failed"
        message = (lines or done.stderr.splitlines()[-1:] or ["it said nothing"])[0]
        # A position in a temporary file means nothing to the user.
        raise RuntimeError(f"{Path(command[0]).name} {status}: {message.partition('error:')[2].strip() or message}")
