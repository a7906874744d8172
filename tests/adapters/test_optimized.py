"""What is written comes out right with the default optimizations of onnxruntime, which fuse what looks familiar."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto

from tests.models import converted, floats, model, run

CONVOLUTION = """
(float[1,2,8,8] x) => (float[1,3,6,6] y)
  <float s = {0.02}, uint8 z = {128}, float[3] ws = {0.01, 0.002, 0.03}, int8[3] wz = {0, 0, 0},
   float[3] bs = {0.0002, 0.00004, 0.0006}, int32[3] bz = {0, 0, 0}, int32[3] b = {1000, -70000, 5},
   float t = {0.05}> {
  xq = QuantizeLinear(x, s, z)
  xd = DequantizeLinear(xq, s, z)
  wd = DequantizeLinear<axis = 0>(w, ws, wz)
  bd = DequantizeLinear<axis = 0>(b, bs, bz)
  c = Conv(xd, wd, bd)
  cq = QuantizeLinear(c, t, z)
  y = DequantizeLinear(cq, t, z)
}
"""


def optimized(made: ModelProto, feeds: dict[str, np.ndarray]) -> np.ndarray:
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)[0]


@pytest.mark.parametrize("target", [12, 10, 9])
def test_weights_are_not_quantized_by_channel_anew(target: int) -> None:
    weights = np.random.default_rng(3).integers(-128, 127, (3, 2, 3, 3)).astype(np.int8)
    given, feeds = model(CONVOLUTION, 13, w=weights), {"x": floats(1, 2, 8, 8)}
    (plain,), found = run(given, feeds), optimized(converted(given, target), feeds)
    # Fused or not, a sum that falls on a tie may go to the next step; weights quantized anew are off by many.
    assert np.abs(found - plain).max() <= 0.05 * 1.001
    assert (found == plain).mean() > 0.97


@pytest.mark.parametrize("target", [16, 13, 9])
@pytest.mark.parametrize(("op_type", "opset"), [("LayerNormalization", 17), ("RMSNormalization", 23)])
def test_the_epsilon_of_doubles_holds(op_type: str, opset: int, target: int) -> None:
    """onnxruntime fuses what exporters wrote for these, and takes 1e-5 for an epsilon that is no float."""
    data = floats(2, 4, 3, 5).astype(np.float64)
    text = "(double[2,4,3,5] x, double[5] scale) => (double[2,4,3,5] y)"
    given = model(f"{text} {{ y = {op_type} <epsilon = 0.25> (x, scale) }}", opset, 10)
    less_mean = data - data.mean(axis=-1, keepdims=True) if op_type == "LayerNormalization" else data
    expected = less_mean / np.sqrt(np.mean(less_mean**2, axis=-1, keepdims=True) + 0.25)
    found = optimized(converted(given, target), {"x": data, "scale": np.ones(5)})
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_quantized_keys_and_values_are_not_moved_before_they_are_multiplied() -> None:
    """onnxruntime 1.31 carries their quantization past what only moves them, and then does not load the model."""
    given = model(
        """(float[1,2,3,4] q, float[1,2,3,4] k, float[1,2,3,4] v) => (float[1,2,3,4] y)
        <float s = {0.05}, int8 z = {3}> {
            k8 = QuantizeLinear (k, s, z)  kf = DequantizeLinear (k8, s, z)
            v8 = QuantizeLinear (v, s, z)  vf = DequantizeLinear (v8, s, z)  y = Attention (q, kf, vf) }""",
        23,
        10,
    )
    feeds = {name: floats(1, 2, 3, 4, seed=at) for at, name in enumerate("qkv")}
    q, k, v = (value.astype(np.float64) for value in feeds.values())
    k, v = (np.clip(np.rint(value / np.float32(0.05)) + 3, -128, 127) * 0.05 - 0.15 for value in (k, v))
    weights = np.exp(q @ k.swapaxes(-1, -2) / 2)
    expected = weights / weights.sum(-1, keepdims=True) @ v
    np.testing.assert_allclose(optimized(converted(given, 21), feeds), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", [10, 9, 7])
@pytest.mark.parametrize("result", ["int64[q] r", "int64[] r"])
def test_what_is_known_of_one_branch_is_not_taken_for_the_other(result: str, target: int) -> None:
    """Inference below 11, and the optimizer with it, would take the shape of nothing for both."""
    given = model(
        f"""(float[n] x, bool c) => (int64[k] y) {{
            w = If (c) <
                then_branch = t () => (int64[0] p) {{ p = Constant <value = int64[0] {{}}> () }},
                else_branch = e () => ({result}) {{ s = Shape (x) r = Reshape (s, s) }}
            >
            y = Shape (w)
        }}""",
        11,
        7,
    )
    for condition, size in ((True, 0), (False, 1)):
        found = optimized(converted(given, target), {"x": np.zeros(1, np.float32), "c": np.array(condition)})
        assert found.tolist() == [size]
