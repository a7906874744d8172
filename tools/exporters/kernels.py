"""Compare kernels that onnxruntime has for the same operator: `python -m tools.exporters.kernels`.

Each line of the table compares a model with the same model after a conversion. Errors are relative to exact
arithmetic, in ULP of the largest result. docs/numerics.md explains them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnxruntime
from onnx import ModelProto, TensorProto, numpy_helper, parser

import reducelower

RANDOM = np.random.default_rng(0)
IMAGE = RANDOM.normal(size=(1, 16, 16, 16)).astype(np.float32)
ROWS = RANDOM.normal(size=(64, 32)).astype(np.float32)
SCALE, BIAS = RANDOM.normal(size=(2, 32)).astype(np.float32)
KERNEL = RANDOM.integers(-100, 100, size=(16, 16, 3, 3)).astype(np.int8)
WEIGHTS = RANDOM.integers(-100, 100, size=(32, 32)).astype(np.int8)

NORMALIZED = "y = LayerNormalization(x, scale, bias)"
QUANTIZED = """
    q = QuantizeLinear(x, step, zero)
    d = DequantizeLinear(q, step, zero)
    p = {operator}
    r = QuantizeLinear(p, step, zero)
    y = DequantizeLinear(r, step, zero)
"""
POOL = "AveragePool<kernel_shape = [2, 2], strides = [2, 2]>"
OFF: Mapping[str, str] = {"level": "ORT_DISABLE_ALL"}
EXTENDED: Mapping[str, str] = {"level": "ORT_ENABLE_EXTENDED"}
ACCURATE: Mapping[str, str] = {"session.qdq_matmulnbits_accuracy_level": "1"}


def model(body: str, opset: int, shape: tuple[int, ...], narrow: type[np.integer[Any]] = np.uint8) -> ModelProto:
    """A graph with one input x, one output y, and the weights that the body reads."""
    made = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}]> g (float{list(shape)} x) => (y) {{ {body} }}'
    )
    made.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
    values = {
        "scale": SCALE, "bias": BIAS, "kernel": KERNEL, "weights": WEIGHTS, "small": np.float32(0.001),
        "step": np.float32(8 / np.iinfo(narrow).max), "zero": np.asarray(np.iinfo(narrow).max // 2, narrow),
    }  # fmt: skip
    made.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value), name) for name, value in values.items() if name in body
    )
    return made


def between(weights: str, operator: str) -> str:
    """A body with an operator between quantizers."""
    return weights + QUANTIZED.format(operator=operator)


def run(made: ModelProto, data: np.ndarray, settings: Mapping[str, str] = OFF) -> Any:
    """The output in onnxruntime, with the optimization level and session options of `settings`."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    for key, value in settings.items():
        if key == "level":
            options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, value)
        else:
            options.add_session_config_entry(key, value)
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": data})[0]


def normalized(data: np.ndarray) -> Any:
    wide = data.astype(np.float64)
    deviation = wide - wide.mean(-1, keepdims=True)
    return deviation / np.sqrt((deviation**2).mean(-1, keepdims=True) + 1e-5) * SCALE + BIAS


def pooled(data: np.ndarray) -> Any:
    return data.astype(np.float64).reshape(1, 16, 8, 2, 8, 2).mean((3, 5))


@dataclass(frozen=True)
class Case:
    """A model, and how to convert and run it.

    Attributes:
        name: its name in the table.
        before: the model.
        target: the opset version it is converted to.
        data: its input.
        settings: how onnxruntime runs it before and after.
        exact: the results in double, if they are known.
    """

    name: str
    before: ModelProto
    target: int
    data: np.ndarray
    settings: Mapping[str, str] = field(default_factory=dict)
    exact: np.ndarray | None = None

    def line(self) -> str:
        first = run(self.before, self.data, self.settings)
        second = run(reducelower.convert_version(self.before, self.target), self.data, self.settings)
        errors = ["", ""]
        if self.exact is not None:
            unit = np.spacing(np.abs(self.exact).max().astype(np.float32))
            errors = [f"{np.abs(found - self.exact).max() / unit:.2f}" for found in (first, second)]
        opset = self.before.opset_import[0].version
        how = ", ".join(f"{key.rpartition('.')[2]} {value}" for key, value in self.settings.items()) or "default"
        differing = f"{np.sum(first != second)} of {first.size}, by up to {np.abs(first - second).max():.1g}"
        return f"| {self.name} | {opset} to {self.target} | {how} | {differing} | {' | '.join(errors)} |"


def cases() -> list[Case]:
    """The cases that docs/numerics.md explains."""
    square, row = IMAGE.shape, ROWS.shape
    convolved = between("w = DequantizeLinear(kernel, small)", "Conv<pads = [1, 1, 1, 1]>(d, w)")
    product = between("w = DequantizeLinear(weights, small)", "MatMul(d, w)")
    pool = between("", f"{POOL}(d)")
    far = ROWS + np.float32(300)
    image, rows = model(convolved, 21, square, np.uint16), model(product, 21, row, np.uint16)
    return [
        Case("AveragePool", model(f"y = {POOL}(x)", 18, square), 19, IMAGE, OFF, pooled(IMAGE)),
        Case("AveragePool between 8-bit quantizers", model(pool, 18, square), 19, IMAGE, OFF),
        Case("the same", model(pool, 18, square), 19, IMAGE),
        Case("LayerNormalization", model(NORMALIZED, 17, row), 13, ROWS, OFF, normalized(ROWS)),
        Case("the same, about 300", model(NORMALIZED, 17, row), 13, far, OFF, normalized(far)),
        Case("the same", model(NORMALIZED, 17, row), 13, ROWS, {}, normalized(ROWS)),
        Case("MatMul between 16-bit quantizers", rows, 13, ROWS),
        Case("the same", rows, 13, ROWS, ACCURATE),
        Case("Conv between 16-bit quantizers", image, 9, IMAGE),
        Case("the same", image, 9, IMAGE, EXTENDED),
    ]


if __name__ == "__main__":
    print(f"onnxruntime {onnxruntime.__version__}\n")
    print("| model | opset | optimizer | results that differ | error before | after |\n|---|---|---|---|--:|--:|")
    print("\n".join(case.line() for case in cases()))
