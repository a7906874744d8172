"""Qualcomm's QNN through onnxruntime's execution provider, on QNN's reference backend for the host's CPU.

Releases of onnxruntime-qnn from 2.4 on do not bring that backend for Linux; 2.3 does, with onnxruntime 1.24.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

_PROVIDER = "QNNExecutionProvider"


def version() -> str:
    """The version installed."""
    import onnxruntime
    import onnxruntime_qnn

    if not Path(onnxruntime_qnn.get_qnn_cpu_path()).exists():
        raise ImportError("this release of onnxruntime-qnn brings no backend for the host's CPU; 2.3.0 does")
    onnxruntime.register_execution_provider_library(_PROVIDER, onnxruntime_qnn.get_library_path())
    return str(onnxruntime_qnn.__version__)


def run(model: bytes, inputs: dict[str, Any]) -> list[Any]:
    """Run a model on QNN alone: a model that needs onnxruntime's own kernels counts as refused."""
    import onnxruntime
    import onnxruntime_qnn

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    devices = [device for device in onnxruntime.get_ep_devices() if device.ep_name == _PROVIDER]
    options.add_provider_for_devices(devices, {"backend_path": onnxruntime_qnn.get_qnn_cpu_path()})
    session = onnxruntime.InferenceSession(model, options)
    for part in session.get_provider_graph_assignment_info():
        if part.ep_name != _PROVIDER:
            left = sorted({node.op_type for node in part.get_nodes()})
            raise RuntimeError(f"QNN does not take {', '.join(left)}")
    return list(session.run(None, inputs))
