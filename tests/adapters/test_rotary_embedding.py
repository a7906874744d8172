"""RotaryEmbedding of equal tables; `cases/rotary_embedding.toml` has its numbers."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser
from onnx.reference.ops.op_rotary_embedding import rotary_embedding

from tests.adapters.single import converted, operators_of, yields

pytestmark = pytest.mark.opset(23)

RANDOM = np.random.default_rng(5)


@pytest.mark.parametrize("target", [22, 13])
def test_equal_tables_are_made_once(target: int) -> None:
    """PyTorch's exporter writes a Cos and a Sin of the same angles for every RotaryEmbedding."""
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 23]>
        g (float[2, 4, 3, 8] q, float[2, 2, 3, 8] k, float[2, 3, 4] turns, float[2, 3, 4] others)
            => (float[2, 4, 3, 8] a, float[2, 2, 3, 8] b, float[2, 2, 3, 8] c) {
            c1 = Cos (turns)  s1 = Sin (turns)  a = RotaryEmbedding (q, c1, s1)
            c2 = Cos (turns)  s2 = Sin (turns)  b = RotaryEmbedding (k, c2, s2)
            c3 = Cos (others)  s3 = Sin (turns)  c = RotaryEmbedding (k, c3, s3)
        }"""
    )
    feeds = {name: RANDOM.normal(size=shape).astype(np.float32) for name, shape in
             {"q": (2, 4, 3, 8), "k": (2, 2, 3, 8), "turns": (2, 3, 4), "others": (2, 3, 4)}.items()}  # fmt: skip
    result = converted(model, target)
    assert operators_of(result).count("Cos") == 2
    assert operators_of(result).count("Sin") == 1
    cosines, sines, others = np.cos(feeds["turns"]), np.sin(feeds["turns"]), np.cos(feeds["others"])
    expected = (
        rotary_embedding(feeds["q"], cosines, sines),
        rotary_embedding(feeds["k"], cosines, sines),
        rotary_embedding(feeds["k"], others, sines),
    )
    for found, wanted in zip(yields(result, feeds), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
