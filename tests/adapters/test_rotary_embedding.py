"""RotaryEmbedding is written out where there is none, in few nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto
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
