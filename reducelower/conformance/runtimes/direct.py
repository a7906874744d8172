"""Runtimes that read ONNX themselves.

Each is a function from the file of a model, alone in a folder that may be written to, and the inputs by name, in the
model's order, to the outputs. This file is loaded by its path in the Python (3.8 or newer) that has the runtime, and
imports nothing of reducelower. Loading it needs only numpy; a function imports what it runs, and some import onnx.
"""

from __future__ import annotations

import importlib
import inspect
import os
from pathlib import Path
from typing import Any, Dict  # noqa: UP035

import numpy as np

__all__ = ["RUNTIMES"]

Inputs = Dict[str, Any]  # noqa: UP006  # Python 3.8 evaluates this and knows no dict[...]

os.environ.setdefault("DEV", "CPU")  # which tinygrad reads as it is imported


def onnxruntime(file: Path, inputs: Inputs) -> Any:
    """onnxruntime on the CPU, with the default optimizations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    # Up to release 1.2 there are no providers to choose from.
    chooses = "providers" in inspect.signature(onnxruntime.InferenceSession.__init__).parameters
    choice = {"providers": ["CPUExecutionProvider"]} if chooses else {}
    return onnxruntime.InferenceSession(file.read_bytes(), options, **choice).run(None, inputs)


def opencv(file: Path, inputs: Inputs) -> Any:
    """OpenCV's dnn module on the CPU, with the engine that it chooses itself.

    Up to OpenCV 4, a matrix has at least two dimensions: an output declared with fewer has dimensions of size 1 at the
    end. They are removed here, as users of OpenCV do. How they change results inside a graph is up to the runtime.
    """
    import cv2
    import onnx

    network = cv2.dnn.readNetFromONNX(np.frombuffer(file.read_bytes(), np.uint8))
    for name, value in inputs.items():
        # Otherwise releases before 4.11 interpret the last of three dimensions as channels.
        network.setInput(cv2.Mat(value, wrap_channels=False), name)
    # OpenCV lists outputs in its own order. Their names may have the layer's name in front.
    names = {name.rpartition("!")[2]: name for name in network.getUnconnectedOutLayersNames()}
    outputs = onnx.load(file).graph.output
    wanted = [names.get(output.name, "") for output in outputs]
    results = network.forward(wanted) if all(wanted) and len(wanted) > 1 else [network.forward()]
    shapes = [[dimension.dim_value for dimension in output.type.tensor_type.shape.dim] for output in outputs]
    # An output without elements is returned as None.
    return [
        np.zeros(shape, np.float32) if value is None else _with_rank(np.array(value), len(shape))
        for value, shape in zip(results, shapes)  # noqa: B905  # Python 3.9 has none
    ]


def _with_rank(value: Any, rank: int) -> Any:
    if rank < value.ndim == 2 and all(size == 1 for size in value.shape[rank:]):
        return value.reshape(value.shape[:rank])
    return value


def openvino(file: Path, inputs: Inputs) -> Any:
    """OpenVINO on the CPU, with float32 kept float32 (on some processors it would compute in bfloat16)."""
    core = _openvino().Core()
    compiled = core.compile_model(core.read_model(file.read_bytes(), b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    # A graph input that nothing uses is dropped, and feeding it would be an error.
    known = {name for port in compiled.inputs for name in port.get_names()}
    results = compiled({name: value for name, value in inputs.items() if name in known})
    return [np.array(results[port]) for port in compiled.outputs]


def _openvino() -> Any:
    """The module with its classes; up to release 2023.0 it was inside the package."""
    import openvino

    return openvino if hasattr(openvino, "Core") else importlib.import_module("openvino.runtime")


def qnn(file: Path, inputs: Inputs) -> Any:
    """Qualcomm's QNN through onnxruntime's execution provider, on its reference backend for the host's CPU.

    It runs on QNN alone: a model that needs onnxruntime's own kernels counts as refused.
    """
    import onnxruntime
    import onnxruntime_qnn

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    devices = [device for device in onnxruntime.get_ep_devices() if device.ep_name == "QNNExecutionProvider"]
    options.add_provider_for_devices(devices, {"backend_path": onnxruntime_qnn.get_qnn_cpu_path()})
    session = onnxruntime.InferenceSession(file.read_bytes(), options)
    for part in session.get_provider_graph_assignment_info():
        if part.ep_name != "QNNExecutionProvider":
            left = sorted({node.op_type for node in part.get_nodes()})
            raise RuntimeError(f"QNN does not take {', '.join(left)}")
    return session.run(None, inputs)


def tinygrad(file: Path, inputs: Inputs) -> Any:
    """tinygrad on the CPU; its CPU device needs clang."""
    from tinygrad.nn.onnx import OnnxRunner

    results = OnnxRunner(str(file))(inputs)
    # Sizes and shapes come as Python's own numbers.
    return [value.numpy() if hasattr(value, "numpy") else value for value in results.values()]


def tract(file: Path, inputs: Inputs) -> Any:
    """tract, Sonos's runtime in Rust, through its Python binding: loaded and optimized."""
    import tract

    results = tract.onnx().load(str(file)).into_model().into_runnable().run(list(inputs.values()))
    return [_plain(value).to_numpy() for value in results]


def _plain(value: Any) -> Any:
    """A tensor in a type that the binding can return: 64-bit integers may be dimensions, which it cannot."""
    import tract

    try:
        value.datum_type()
    except tract.TractError:
        return value.convert_to(tract.DatumType.I64)
    return value


def _version_of_openvino() -> str:
    """The version without the build."""
    return str(_openvino().get_version()).split("-")[0]


def _version_of_qnn() -> str:
    """The version; from 2.4 on, releases do not bring the backend for the host's CPU for Linux."""
    import onnxruntime
    import onnxruntime_qnn

    if not Path(onnxruntime_qnn.get_qnn_cpu_path()).exists():
        raise ImportError("this release of onnxruntime-qnn brings no backend for the host's CPU; 2.3.0 does")
    onnxruntime.register_execution_provider_library("QNNExecutionProvider", onnxruntime_qnn.get_library_path())
    return str(onnxruntime_qnn.__version__)


RUNTIMES = {
    "onnxruntime": (onnxruntime, lambda: importlib.import_module("onnxruntime").__version__, ""),
    "opencv": (opencv, lambda: importlib.import_module("cv2").__version__, "cv2.dnn"),
    "openvino": (openvino, _version_of_openvino, ""),
    "qnn": (qnn, _version_of_qnn, ""),
    "tinygrad": (tinygrad, "tinygrad", "tinygrad.nn.onnx"),
    "tract": (tract, "tract", "tract"),
}
"""By name: the function, the package whose version counts or a function that gives it, and the modules that have to be
there."""
