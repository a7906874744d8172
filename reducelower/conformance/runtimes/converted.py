"""Runtimes that first convert a model to a form of their own.

Each is a function from the file of a model, alone in a folder that may be written to, and the inputs by name, in the
model's order, to the outputs. This file is loaded by its path in the Python (3.8 or newer) that has the runtime, and
imports nothing of reducelower. Loading it needs only numpy; a function imports what it runs, and some import onnx.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import re
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import IO, Any, Dict, Iterator  # noqa: UP035

import numpy as np

__all__ = ["RUNTIMES"]

Inputs = Dict[str, Any]  # noqa: UP006  # Python 3.8 evaluates this and knows no dict[...]


def iree(file: Path, inputs: Inputs) -> Any:
    """IREE: imported and compiled for the CPU by its own programs, run by its runtime."""
    import iree.runtime
    import onnx
    from iree.compiler.tools.import_onnx import __main__ as importer

    imported, compiled = file.with_suffix(".mlir"), file.with_suffix(".vmfb")
    if importer.main(importer.parse_arguments([str(file), "-o", str(imported)])):
        raise RuntimeError("iree-import-onnx failed")
    program = str(Path(sysconfig.get_path("scripts"), "iree-compile"))
    flags = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
    # By default double is demoted to float, and double inputs are then refused.
    flags += ["--iree-llvmcpu-target-cpu=generic", "--iree-input-demote-f64-to-f32=false"]
    done = subprocess.run(
        [program, *flags, str(imported), "-o", str(compiled)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error:" in line.lower()]
        status = f"crashed with signal {-done.returncode}" if done.returncode < 0 else "failed"
        message = (lines or done.stderr.splitlines()[-1:] or ["it said nothing"])[0]
        # A position in a temporary file means nothing to the user.
        raise RuntimeError(f"iree-compile {status}: {message.partition('error:')[2].strip() or message}")
    context = iree.runtime.SystemContext(config=iree.runtime.Config("local-sync"))
    context.add_vm_module(iree.runtime.VmModule.copy_buffer(context.instance, compiled.read_bytes()))
    return context.modules.module[onnx.load(file).graph.name](*inputs.values())


def mnn(file: Path, inputs: Inputs) -> Any:
    """MNN: converted by its converter module and run through its expression interface.

    Inputs are cast to float32 or int32, the only types in which it computes. The ``mnnconvert`` program is not used: it
    reports each conversion to a server. The module it calls does not.
    """
    import _tools
    import MNN.nn
    import onnx

    results = [value.name for value in onnx.load(file).graph.output]
    goal = file.with_suffix(".mnn")
    flags = ["-f", "ONNX", "--modelFile", str(file), "--MNNModel", str(goal), "--bizCode", "probe"]
    _tools.mnnconvert(["mnnconvert", *flags])
    if not goal.exists():
        raise RuntimeError("the converter wrote no model")
    module = MNN.nn.load_module_from_file(str(goal), list(inputs), results)
    answer = module.forward([_variable(value) for value in inputs.values()])
    outputs = answer if isinstance(answer, (tuple, list)) else [answer]
    if len(outputs) != len(results):
        raise RuntimeError("the module was loaded but gave no outputs")
    # A value without elements cannot be read.
    return [np.array(value.read()) if all(value.shape) else np.zeros(value.shape, np.float32) for value in outputs]


def _variable(value: Any) -> Any:
    import MNN.expr

    kind, number = (np.float32, MNN.expr.float) if value.dtype.kind == "f" else (np.int32, MNN.expr.int)
    variable = MNN.expr.placeholder(list(value.shape), MNN.expr.NCHW, number)
    if value.size:
        variable.write(np.ascontiguousarray(value, kind))
    return variable


def ncnn(file: Path, inputs: Inputs) -> Any:
    """ncnn: converted by pnnx in full precision and run on the CPU."""
    import ncnn
    import onnx

    count = len(onnx.load(file).graph.output)
    written = _by_pnnx(file, "model.ncnn.param")
    results = []
    with ncnn.Net() as network:
        _check(network.load_param(str(written)), "ncnn: load_param")
        _check(network.load_model(str(written.with_suffix(".bin"))), "ncnn: load_model")
        with network.create_extractor() as extractor:
            for at, value in enumerate(inputs.values()):
                # With this value, the Python binding keeps the first dimension, as in code that pnnx generates.
                extractor.input(f"in{at}", ncnn.Mat(value, batch_index=233).clone())
            for at in range(count):
                status, output = extractor.extract(f"out{at}")
                _check(status, "ncnn: extract")
                results.append(np.array(output.numpy(batch_index=233)))
    return results


def _by_pnnx(file: Path, name: str) -> Path:
    """A file that pnnx's own program writes for a model."""
    import pnnx

    done = subprocess.run([pnnx.EXEC_PATH, file.name, "fp16=0"], cwd=file.parent, capture_output=True, check=False)
    written = file.parent / name
    if done.returncode or not written.exists():
        status = f"crashed with signal {-done.returncode}" if done.returncode < 0 else f"wrote no {name}"
        raise RuntimeError(f"pnnx {status}")
    return written


def _check(status: int, step: str) -> None:
    if status:
        raise RuntimeError(f"{step} failed with status {status}")


def pnnx(file: Path, inputs: Inputs) -> Any:
    """pnnx: the model as PyTorch code, which is run on the CPU."""
    import torch

    spec = importlib.util.spec_from_file_location("model_pnnx", _by_pnnx(file, "model_pnnx.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    os.chdir(file.parent)  # the code opens its weights by a bare file name
    spec.loader.exec_module(module)
    with torch.no_grad():
        results = module.Model().eval()(*map(torch.from_numpy, inputs.values()))
    return [value.numpy() for value in (results if isinstance(results, (tuple, list)) else [results])]


_NOT_LOWERED = re.compile(rb"No lowering found for: [^,]*, node type = (\w+)")
"""The message of RKNN's compiler about an operator that the NPU's runtime lacks. It builds the model nevertheless, and
the simulator runs it, since it computes everything on the PC."""


def rknn(file: Path, inputs: Inputs) -> Any:
    """Rockchip's NPUs: RKNN-Toolkit2's compiler without quantization, and its simulator on a PC."""
    from rknn.api import RKNN

    npu = RKNN(verbose=False)
    try:
        _check(npu.config(target_platform="rk3588"), "RKNN-Toolkit2: config")
        _check(npu.load_onnx(model=str(file)), "RKNN-Toolkit2: load_onnx")
        with _captured_output() as output:
            _check(npu.build(do_quantization=False), "RKNN-Toolkit2: build")
            ctypes.CDLL(None).fflush(None)
            output.seek(0)
            missing = sorted({name.decode() for name in _NOT_LOWERED.findall(output.read())})
        if missing:
            raise RuntimeError(f"no lowering found for {', '.join(missing)}")
        _check(npu.init_runtime(), "RKNN-Toolkit2: init_runtime")
        # The layout is required for every input, and used for inputs with four dimensions.
        values = [np.ascontiguousarray(value) for value in inputs.values()]
        results = npu.inference(inputs=values, data_format=["nchw"] * len(values))
    finally:
        npu.release()
    if results is None:
        raise RuntimeError("inference gave no outputs")
    return results


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
            for stream in (1, 2):
                os.dup2(originals[stream - 1], stream)
                os.close(originals[stream - 1])


def tflite(file: Path, inputs: Inputs) -> Any:
    """TensorFlow Lite: converted by onnx2tf, inputs in their own layout, and run by the LiteRT interpreter in float32.

    The converted file has float instead of float16, so float16 inputs are cast to float.
    """
    import onnx
    import onnx2tf
    from ai_edge_litert.interpreter import Interpreter

    onnx2tf.convert(
        input_onnx_file_path=str(file),
        output_folder_path=str(file.parent),
        keep_shape_absolutely_input_names=list(inputs),
        copy_onnx_input_output_names_to_tflite=True,
        non_verbose=True,
    )
    interpreter = Interpreter(str(file.parent / "model_float32.tflite"))
    interpreter.allocate_tensors()
    runner = interpreter.get_signature_runner()  # only the signature has the model's own names
    kinds = {name: detail["dtype"] for name, detail in runner.get_input_details().items()}
    outputs = runner(**{name: value.astype(kinds[name]) for name, value in inputs.items()})
    return [outputs[value.name] for value in onnx.load(file).graph.output]


def tvm(file: Path, inputs: Inputs) -> Any:
    """Apache TVM through its Relax importer, compiled with LLVM for the CPU."""
    import onnx
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    read = onnx.load(file)
    module = from_onnx(read, keep_params_in_input=False)
    module = relax.transform.DecomposeOpsForInference()(module)
    module = relax.transform.LegalizeOps()(module)
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    results = machine["main"](*map(tvm.runtime.tensor, inputs.values()))
    # A shape comes as numbers of TVM's own.
    return [
        result.numpy() if hasattr(result, "numpy") else np.array([int(size) for size in result], np.int64)
        for result in ([results] if len(read.graph.output) == 1 else results)
    ]


RUNTIMES = {
    "iree": (iree, "iree-base-compiler", "iree.runtime iree.compiler.tools.import_onnx.__main__"),
    "mnn": (mnn, "MNN", "MNN.nn _tools"),  # the name of its converter alone would not tell the user what is missing
    "ncnn": (ncnn, "ncnn", "ncnn pnnx"),
    "pnnx": (pnnx, "pnnx", "pnnx torch"),
    "rknn": (rknn, "rknn-toolkit2", "rknn.api", 4e-3),  # it computes in float16
    "tflite": (tflite, "onnx2tf", "onnx2tf ai_edge_litert.interpreter"),  # onnx2tf decides how a model is translated
    "tvm": (tvm, "apache-tvm", "tvm.relax.frontend.onnx"),
}
"""By name: the function, the package whose version counts, the modules that have to be there, and the tolerance where
it is not that of the element types (see `judging.judge`)."""
