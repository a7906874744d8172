"""TensorFlow Lite: converted by onnx2tf, inputs in their own layout, and run by the LiteRT interpreter in float32.

The converted file has float instead of float16, so float16 inputs are cast to float.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

PACKAGE = "onnx2tf"  # it decides how a model is translated
MODULES = ("onnx2tf", "ai_edge_litert.interpreter")


def run(model: bytes, inputs: dict[str, Any]) -> list[Any]:
    """Convert and run a model."""
    import numpy as np
    import onnx
    import onnx2tf
    from ai_edge_litert.interpreter import Interpreter

    graph = onnx.load_from_string(model).graph
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "model.onnx")
        source.write_bytes(model)
        onnx2tf.convert(
            input_onnx_file_path=str(source),
            output_folder_path=folder,
            keep_shape_absolutely_input_names=list(inputs),
            copy_onnx_input_output_names_to_tflite=True,
            non_verbose=True,
        )
        interpreter = Interpreter(str(Path(folder, "model_float32.tflite")))
        interpreter.allocate_tensors()
    # Only the signature has the model's own names.
    runner = interpreter.get_signature_runner()
    kinds = {name: detail["dtype"] for name, detail in runner.get_input_details().items()}
    outputs = runner(**{name: value.astype(kinds[name]) for name, value in inputs.items()})
    return [np.array(outputs[value.name]) for value in graph.output]
