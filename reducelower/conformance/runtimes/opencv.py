"""OpenCV's dnn module on the CPU, with the engine that it chooses itself.

Up to OpenCV 4, a matrix has at least two dimensions: an output declared with fewer has dimensions of size 1 at the end.
They are removed here, as users of OpenCV do. How they change results inside a graph is up to the runtime.
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
        # Otherwise releases before 4.11 interpret the last of three dimensions as channels.
        network.setInput(cv2.Mat(value, wrap_channels=False), name)
    outputs = onnx.load_from_string(model).graph.output
    # OpenCV lists outputs in its own order. Their names may have the layer's name in front.
    names = {name.rpartition("!")[2]: name for name in network.getUnconnectedOutLayersNames()}
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
