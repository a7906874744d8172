"""Attention as onnxruntime's optimizer leaves it; what it computes across versions is in `cases/attention.toml`."""

from __future__ import annotations

import numpy as np
from onnx import parser

from tests.adapters.models import converted, floats, run


def test_quantized_keys_and_values_are_not_moved_before_they_are_multiplied() -> None:
    """onnxruntime 1.31 carries their quantization past what only moves them, and then does not load the model."""
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["": 23]>
        g (float[1, 2, 3, 4] q, float[1, 2, 3, 4] k, float[1, 2, 3, 4] v) => (float[1, 2, 3, 4] y)
        <float s = {0.05}, int8 z = {3}> {
            k8 = QuantizeLinear (k, s, z)  kf = DequantizeLinear (k8, s, z)
            v8 = QuantizeLinear (v, s, z)  vf = DequantizeLinear (v8, s, z)  y = Attention (q, kf, vf)
        }"""
    )
    feeds = {"q": floats(1, 2, 3, 4), "k": floats(1, 2, 3, 4, seed=1), "v": floats(1, 2, 3, 4, seed=2)}
    made = converted(model, 21)
    (found,) = run(made, feeds)
    q, k, v = (value.astype(np.float64) for value in feeds.values())
    k, v = (np.clip(np.rint(value / np.float32(0.05)) + 3, -128, 127) * 0.05 - 0.15 for value in (k, v))
    weights = np.exp(q @ k.swapaxes(-1, -2) / 2)
    np.testing.assert_allclose(found, weights / weights.sum(-1, keepdims=True) @ v, rtol=1e-4, atol=1e-5)
