"""OpenCV's dnn module on the CPU, with the engine that it chooses itself."""

from __future__ import annotations

from typing import Any

__all__ = ["run", "version"]


def version() -> str:
    """The version installed."""
    import cv2
    import cv2.dnn

    return str(cv2.__version__)


def run(model: bytes, inputs: dict[str, Any]) -> list[Any]:
    """Read and run a model."""
    import cv2
    import numpy as np

    network = cv2.dnn.readNetFromONNX(np.frombuffer(model, np.uint8))
    for name, value in inputs.items():
        network.setInput(value, name)
    # A list of names may come back in another order than the graph's, so one output is asked for without a name.
    names = network.getUnconnectedOutLayersNames()
    found = [network.forward()] if len(names) == 1 else network.forward(names)
    return [np.array(value) for value in found]
