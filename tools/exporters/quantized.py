"""A small network as onnxruntime's quantizer writes it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper, parser

quantization = pytest.importorskip("onnxruntime.quantization")

RANDOM = np.random.default_rng(7)
DATA = RANDOM.normal(size=(2, 4, 9, 9)).astype(np.float32)

NETWORK = """
<ir_version: 8, opset_import: ["" : %d]>
g (float[N,4,9,9] x) => (float[N,5] y) {
    c = Conv<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(x, w, b)
    r = Relu(c)
    p = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(r)
    d = Conv<kernel_shape = [3, 3], group = 2>(p, v, a)
    s = Sigmoid(d)
    m = Add(d, s)
    f = Flatten(m)
    y = Gemm<transB = 1>(f, u, e)
}
"""
WEIGHTS = {"w": (6, 4, 3, 3), "b": (6,), "v": (8, 3, 3, 3), "a": (8,), "u": (5, 32), "e": (5,)}


class Calibration(quantization.CalibrationDataReader):  # type: ignore[misc]  # it comes without types
    """One set of inputs from which the quantizer measures ranges."""

    def __init__(self) -> None:
        self._left: list[dict[str, np.ndarray]] = [{"x": DATA}]

    def get_next(self) -> dict[str, np.ndarray] | None:
        """The inputs, once."""
        return self._left.pop() if self._left else None


def network(opset: int, path: Path) -> None:
    """Write the network with weights whose magnitudes differ by channel."""
    model = parser.parse_model(NETWORK % opset)
    random = np.random.default_rng(1)
    for name, shape in WEIGHTS.items():
        values = random.normal(size=shape) * 10 ** random.uniform(-1, 0.5, size=(shape[0], *[1] * (len(shape) - 1)))
        model.graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), name))
    onnx.save(model, path)


def quantized(kind: str, opset: int, folder: Path) -> ModelProto:
    """The network, quantized in one of the ways that `tools.exporters.corpus` lists."""
    before, after = folder / "before.onnx", folder / "after.onnx"
    network(opset, before)
    if kind == "dynamic":
        quantization.quantize_dynamic(before, after)
        return onnx.load(after)
    wide = {"activation_type": quantization.QuantType.QUInt16} if "16" in kind else {}
    if "4" in kind:
        wide = {"weight_type": quantization.QuantType.QInt4}
    form = quantization.QuantFormat.QOperator if kind == "operators" else quantization.QuantFormat.QDQ
    quantization.quantize_static(before, after, Calibration(), quant_format=form, per_channel="channel" in kind, **wide)
    return onnx.load(after)
