"""MNN: converted by its converter module and run through its expression interface.

The ``mnnconvert`` program is not used: it reports each conversion to a server. The module it calls does not.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any


def version() -> str:
    """The version installed."""
    import MNN.nn

    number = str(MNN.version())
    import _tools  # noqa: F401  # its converter; its name alone would not tell the user what is missing

    return number


def run(model: bytes, inputs: dict[str, Any]) -> list[Any]:
    """Convert and run a model; inputs are cast to float32 or int32, the only types in which MNN computes."""
    import _tools
    import MNN.nn
    import numpy as np
    import onnx

    graph = onnx.load_from_string(model).graph
    names = [value.name for value in graph.input if value.name in inputs]
    results = [value.name for value in graph.output]
    with tempfile.TemporaryDirectory() as folder:
        source, goal = Path(folder, "model.onnx"), Path(folder, "model.mnn")
        source.write_bytes(model)
        flags = ["-f", "ONNX", "--modelFile", str(source), "--MNNModel", str(goal), "--bizCode", "probe"]
        _tools.mnnconvert(["mnnconvert", *flags])
        if not goal.exists():
            raise RuntimeError("the converter wrote no model")
        module = MNN.nn.load_module_from_file(str(goal), names, results)
        answer = module.forward([_variable(inputs[name]) for name in names])
        outputs = answer if isinstance(answer, (tuple, list)) else [answer]
        if len(outputs) != len(results):
            raise RuntimeError("the module was loaded but gave no outputs")
        # A value without elements cannot be read.
        return [np.array(value.read()) if all(value.shape) else np.zeros(value.shape, np.float32) for value in outputs]


def _variable(value: Any) -> Any:
    import MNN.expr
    import numpy as np

    kind, number = (np.float32, MNN.expr.float) if value.dtype.kind == "f" else (np.int32, MNN.expr.int)
    variable = MNN.expr.placeholder(list(value.shape), MNN.expr.NCHW, number)
    if value.size:
        variable.write(np.ascontiguousarray(value, kind))
    return variable
