"""RotaryEmbedding is written out where there is none, in few nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, parser
from onnx.reference.ops.op_rotary_embedding import rotary_embedding

from tests.adapters.single import converted, model_of, operators_of, yields

pytestmark = pytest.mark.opset(23)

RANDOM = np.random.default_rng(5)


def angles(*shape: int) -> dict[str, np.ndarray]:
    turns = RANDOM.random(shape)
    return {"cos": np.cos(turns).astype(np.float32), "sin": np.sin(turns).astype(np.float32)}


PLACES = np.array([[3, 0, 5], [1, 1, 2]])
CASES: dict[str, tuple[tuple[int, ...], dict[str, np.ndarray], dict[str, int], int]] = {
    "heads apart": ((2, 4, 3, 8), angles(2, 3, 4), {}, 10),
    "heads together": ((2, 3, 32), angles(2, 3, 4), {"num_heads": 4}, 12),
    "a part of each head": ((2, 4, 3, 8), angles(2, 3, 2), {"rotary_embedding_dim": 4}, 12),
    "angles by place": ((2, 4, 3, 8), {**angles(6, 4), "places": PLACES}, {}, 12),
    "interleaved": ((2, 4, 3, 8), angles(2, 3, 4), {"interleaved": 1}, 99),
}


@pytest.mark.parametrize("target", [22, 13, 9])
@pytest.mark.parametrize("name", CASES)
def test_halves_are_turned_by_their_angles(name: str, target: int) -> None:
    shape, tables, attributes, most = CASES[name]
    data = RANDOM.normal(size=shape).astype(np.float32)
    inputs = {"x": data, **tables}
    model = model_of("RotaryEmbedding", inputs, opset=23, ir_version=10, **attributes)
    result = converted(model, target)
    expected = rotary_embedding(data, *tables.values(), **attributes)
    np.testing.assert_array_equal(yields(result, inputs)[0], expected)
    assert len(operators_of(result)) <= most


@pytest.mark.parametrize("shape", [(0, 4, 3, 8), (2, 4, 0, 8)])
def test_no_tokens_are_turned_into_none(shape: tuple[int, ...]) -> None:
    inputs: dict[str, Any] = {"x": np.zeros(shape, np.float32), **angles(shape[0], shape[2], 4)}
    shapes = {"x": ("B", "H", "S", 8), "cos": ("B", "S", 4), "sin": ("B", "S", 4)}
    outputs = {"y": (TensorProto.FLOAT, ("B", "H", "S", 8))}
    model = model_of("RotaryEmbedding", inputs, opset=23, ir_version=10, shapes=shapes, outputs=outputs)
    assert yields(converted(model, 13), inputs)[0].shape == shape


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
