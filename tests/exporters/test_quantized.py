"""What onnxruntime's quantizer writes computes the same to the last bit at every opset version it reaches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, checker, numpy_helper, parser

import reducelower
from tools.exporters.quantized import DATA, quantized


def run(model: ModelProto, *, optimized: bool) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": DATA})[0]


KINDS = [
    ("tensors", 13),
    ("channels", 13),
    ("channels", 17),
    ("operators", 13),
    ("dynamic", 13),
    ("16 bits", 21),
    ("4 bits", 21),
]


@pytest.mark.parametrize(("kind", "opset"), KINDS)
def test_every_bit_is_the_same_at_every_opset(kind: str, opset: int, tmp_path: Path) -> None:
    model = quantized(kind, opset, tmp_path)
    expected = run(model, optimized=False)
    for target in (7, 8, 9, 10, 11, 12, 13, 17, 20, 21, 23):
        converted = reducelower.convert_version(model, target)
        checker.check_model(converted, full_check=True)
        np.testing.assert_array_equal(run(converted, optimized=False), expected, f"opset {target}")


@pytest.mark.parametrize(("kind", "opset"), [("tensors", 17), ("channels", 17)])
def test_patterns_that_runtimes_fuse_stay_wherever_the_operators_are(kind: str, opset: int, tmp_path: Path) -> None:
    model = quantized(kind, opset, tmp_path)
    expected = run(model, optimized=True)
    operators = [node.op_type for node in model.graph.node]
    for target in (13, 15, 20, 21):
        converted = reducelower.convert_version(model, target)
        assert [node.op_type for node in converted.graph.node] == operators
        np.testing.assert_array_equal(run(converted, optimized=True), expected, f"opset {target}")


@pytest.mark.parametrize("target", [10, 11, 12])
def test_the_default_optimizer_does_not_quantize_anew_what_was_by_channel(target: int, tmp_path: Path) -> None:
    model = quantized("channels", 13, tmp_path)
    expected = run(model, optimized=False)
    step = max(
        float(numpy_helper.to_array(tensor).max()) for tensor in model.graph.initializer if tensor.name == "y_scale"
    )
    found = run(reducelower.convert_version(model, target), optimized=True)
    assert np.abs(found - expected).max() <= step * 1.001


NORMALIZED = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2,4,9,9] x) => (float[2,4,9,9] y)
<float[9] w = {1, -2, 0.5, 3, 1, 1.5, -1, 2, 0.1}, float step = {0.0003}, uint16 zero = {32768}>
{
    n = LayerNormalization(x, w, w)
    q = QuantizeLinear(n, step, zero)
    y = DequantizeLinear(q, step, zero)
}
"""


@pytest.mark.parametrize("target", [9, 11, 13, 17, 20])
def test_a_normalization_before_a_quantizer_is_the_runtimes_own_kernel_under_its_default_optimizer(target: int) -> None:
    model = parser.parse_model(NORMALIZED)
    converted = reducelower.convert_version(model, target)
    np.testing.assert_array_equal(run(converted, optimized=True), run(model, optimized=True))
