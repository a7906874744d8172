"""What several rewrites compute from the same values stands once."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, parser

from tests.models import converted, operators, yields


def model(opset: int, text: str) -> ModelProto:
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> g {text}')


def test_the_sizes_of_one_value_are_asked_for_once() -> None:
    before = model(
        18,
        "(float[A, B, C] x) => (int64[1] y, int64[2] z) "
        "{ y = Shape <start = 0, end = 1> (x) z = Shape <start = 1> (x) }",
    )
    after = converted(before, 13)
    assert sorted(operators(after)) == ["Shape", "Slice", "Slice"]
    feeds = {"x": np.zeros((2, 3, 4), np.float32)}
    for ours, expected in zip(yields(after, feeds), yields(before, feeds), strict=True):
        np.testing.assert_array_equal(ours, expected)


HEADS = "float[2, 4, 3, 8]"
TURNED_TWICE = (
    f"({HEADS} q, {HEADS} k, float[2, 3, 4] c, float[2, 3, 4] s) => ({HEADS} y, {HEADS} z) "
    "{ y = RotaryEmbedding (q, c, s) z = RotaryEmbedding (k, c, s) }"
)


@pytest.mark.opset(23)
def test_tables_of_the_same_angles_are_made_once() -> None:
    before = model(23, TURNED_TWICE)
    after = converted(before, 13)
    assert len(operators(after)) == 15
    assert {value.name for value in after.graph.value_info} <= {
        name for node in after.graph.node for name in node.output
    }
    random = np.random.default_rng(0)
    feeds = {name: random.normal(size=(2, 4, 3, 8)).astype(np.float32) for name in "qk"}
    feeds |= {name: random.normal(size=(2, 3, 4)).astype(np.float32) for name in "cs"}
    for ours, expected in zip(yields(after, feeds), yields(before, feeds), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.opset(23)
def test_values_of_other_angles_are_not_shared() -> None:
    text = TURNED_TWICE.replace("float[2, 3, 4] s)", "float[2, 3, 4] s, float[2, 3, 4] t)").replace(
        "(k, c, s)", "(k, c, t)"
    )
    assert len(operators(converted(model(23, text), 13))) == 18
