"""Normalizations as onnxruntime's optimizer leaves them; what they compute is in `cases/layer_normalization.toml`."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from tests.adapters.models import run
from tests.adapters.single import converted, model_of

DATA = np.random.default_rng(7).normal(size=(2, 4, 3, 5)).astype(np.float32)


@pytest.mark.parametrize("target", [16, 13, 9])
@pytest.mark.parametrize(("op_type", "opset"), [("LayerNormalization", 17), ("RMSNormalization", 23)])
def test_the_epsilon_of_doubles_holds_with_the_optimizations_of_a_runtime(
    op_type: str, opset: int, target: int
) -> None:
    """onnxruntime fuses what exporters wrote for these, and takes 1e-5 for an epsilon that is no float."""
    data = DATA.astype(np.float64)
    model = model_of(
        op_type, {"x": data, "scale": np.ones(5)}, opset=opset, ir_version=10, epsilon=0.25,
        outputs={"y": (TensorProto.DOUBLE, None)},
    )  # fmt: skip
    less_mean = data - data.mean(axis=-1, keepdims=True) if op_type == "LayerNormalization" else data
    expected = less_mean / np.sqrt(np.mean(less_mean**2, axis=-1, keepdims=True) + 0.25)
    (found,) = run(converted(model, target), {"x": data, "scale": np.ones(5)})
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
