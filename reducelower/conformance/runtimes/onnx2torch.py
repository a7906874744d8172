"""onnx2torch: the model as a PyTorch module, run on the CPU."""

from __future__ import annotations

from typing import Any

_kept: list[Any] = []


def version() -> str:
    """The version installed."""
    from importlib.metadata import version as installed

    _declare_detection_operators()
    import onnx2torch  # noqa: F401

    return installed("onnx2torch")


def _declare_detection_operators() -> None:
    """Let torchvision be imported where its library does not load beside this PyTorch.

    onnx2torch imports torchvision for NonMaxSuppression alone; torchvision registers operators that its library would
    have declared, and fails without their declarations.
    """
    import torch

    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _kept.append(library)


def run(model: bytes, inputs: dict[str, Any]) -> list[Any]:
    """Convert and run a model."""
    import onnx
    import torch
    from onnx2torch import convert

    read = onnx.load_from_string(model)
    with torch.no_grad():
        results = convert(read)(*(torch.from_numpy(inputs[value.name]) for value in read.graph.input))
    return [value.numpy() for value in (results if isinstance(results, (tuple, list)) else [results])]
