"""OpenCV's dnn module on the CPU, with the engine that it chooses itself.

Up to OpenCV 4 a matrix has two dimensions at least: what is declared with fewer comes with ones at the end, which are
taken off here, as whoever uses OpenCV does. What becomes of them inside a graph is the runtime's.
"""

from __future__ import annotations

from typing import Any


def version() -> str:
    """The version installed."""
    import cv2
    import cv2.dnn

    return str(cv2.__version__)


def run(model: bytes, inputs: dict[str, Any]) -> list[Any]:
    """Read and run a model."""
    import cv2
    import numpy as np
    import onnx

    network = cv2.dnn.readNetFromONNX(np.frombuffer(model, np.uint8))
    for name, value in inputs.items():
        # Else releases before 4.11 take the last of three dimensions for channels.
        network.setInput(cv2.Mat(value, wrap_channels=False), name)
    outputs = onnx.load_from_string(model).graph.output
    # They are listed in an order of their own, by names that may have the layer's in front, which none is asked for by.
    names = {name.rpartition("!")[2]: name for name in network.getUnconnectedOutLayersNames()}
    wanted = [names.get(output.name, "") for output in outputs]
    found = network.forward(wanted) if all(wanted) and len(wanted) > 1 else [network.forward()]
    shapes = [[dimension.dim_value for dimension in output.type.tensor_type.shape.dim] for output in outputs]
    # What holds nothing is handed over as None.
    return [
        np.zeros(shape, np.float32) if value is None else _with_rank(np.array(value), len(shape))
        for value, shape in zip(found, shapes)  # noqa: B905  # Python 3.9 has none
    ]


def _with_rank(value: Any, rank: int) -> Any:
    if rank < value.ndim == 2 and all(size == 1 for size in value.shape[rank:]):
        return value.reshape(value.shape[:rank])
    return value
