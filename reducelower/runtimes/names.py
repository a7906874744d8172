"""Aliases of runtimes: names of packages, short names, former names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

__all__ = ["no_such_target", "target_named"]

_ALIASES: Mapping[str, str] = {
    "ascend": "cann",
    "coreml": "coremltools",
    "iree": "iree-base-compiler iree-base-runtime iree-compiler iree-runtime",
    "jaxonnxruntime": "jaxort",
    "onnxruntime": "onnxruntime-cpu onnxruntime-gpu onnxruntime-training ort windowsml winml",
    "onnxruntime-directml": "directml dml",
    "onnxruntime-web": "ort-web wasm webassembly",
    "onnxruntime-webgpu": "webgpu",
    "onnxruntime-webnn": "webnn",
    "opencv": "cv cv2 opencv-contrib-python opencv-contrib-python-headless opencv-dnn opencv-python "
    "opencv-python-headless",
    "openvino": "openvino-dev openvino-runtime ov",
    "qnn": "hexagon hexagon-nn qairt snpe",
    "rknn": "rknn-toolkit2 rknn-toolkit-lite2 rknpu2 rockchip",
    "tidl": "edgeai edgeai-tidl-tools ti-tidl",
    "tensorrt": "nvidia-tensorrt onnx-tensorrt tensorrt-cu11 tensorrt-cu12 tensorrt-cu13 trt trtexec",
    "tflite": "ai-edge-litert litert tensorflow-lite tf-lite tflite-runtime",
    "tract": "sonos-tract tract-onnx",
    "tvm": "apache-tvm",
}
"""The other names of each target, separated by spaces."""

_TARGETS = {alias: target for target, names in _ALIASES.items() for alias in names.split()}


def target_named(name: str) -> str:
    """The target that a name means, or the name itself in lower case."""
    plain = name.strip().lower().replace("_", "-")
    return _TARGETS.get(plain, plain)


def no_such_target(names: Iterable[str]) -> str:
    """The error text for an unknown name.

    It suggests no similar name, since that would mostly be another runtime.
    """
    return (
        f"no target has this name; there are {', '.join(names)}. `reducelower probe` measures any other runtime and "
        "writes a target file; one can also be written by hand from its documentation"
    )
