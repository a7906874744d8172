"""The layout of recurrent operators, names of sampling modes, default axes and orders of channels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from tests.adapters.single import converted, model_of, operators_of, yields

RANDOM = np.random.default_rng(13)
FLOAT = TensorProto.FLOAT
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def random(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("target", [13, 9, 7])
@pytest.mark.parametrize("op_type", GATES)
def test_batch_first_is_transposed(op_type: str, target: int) -> None:
    hidden, data, state = 3, random(2, 5, 4), random(2, 1, 3)
    inputs = {
        "x": data,
        "w": random(1, GATES[op_type] * hidden, 4),
        "r": random(1, GATES[op_type] * hidden, hidden),
        "_b": np.zeros(0),
        "_lengths": np.zeros(0),
        "h": state,
    }
    outputs = {"y": (FLOAT, (2, 5, 1, hidden)), "y_h": (FLOAT, (2, 1, hidden))}
    model = model_of(op_type, inputs, opset=14, outputs=outputs, hidden_size=hidden, layout=1)
    # onnxruntime has no layout=1, so the same is asked with the sequence first.
    turned = {**inputs, "x": data.transpose(1, 0, 2).copy(), "h": state.transpose(1, 0, 2).copy()}
    plain_outputs = {"y": (FLOAT, (5, 1, 2, hidden)), "y_h": (FLOAT, (1, 2, hidden))}
    plain = model_of(op_type, turned, opset=14, outputs=plain_outputs, hidden_size=hidden)
    sequence, last = yields(plain, turned)
    ours, ours_last = yields(converted(model, target), inputs)
    np.testing.assert_allclose(ours, sequence.transpose(2, 0, 1, 3), rtol=1e-6)
    np.testing.assert_allclose(ours_last, last.transpose(1, 0, 2), rtol=1e-6)


IMAGE = random(1, 2, 5, 6)


def test_regions_without_a_shift_follow() -> None:
    inputs = {"x": IMAGE, "rois": np.array([[0, 0, 3, 3]], np.float32), "batch": np.array([0])}
    attributes: dict[str, Any] = {"output_height": 2, "output_width": 2}
    plain = model_of("RoiAlign", inputs, opset=10, **attributes)
    expected = yields(plain, inputs)[0]
    up = converted(plain, 18)
    np.testing.assert_allclose(yields(up, inputs)[0], expected, rtol=1e-6)
    np.testing.assert_allclose(yields(converted(up, 11), inputs)[0], expected, rtol=1e-6)


@pytest.mark.parametrize("target", [3, 7, 13])
def test_the_misspelled_default_direction_is_spelled_out(target: int) -> None:
    inputs = {"x": random(5, 2, 4), "w": random(1, 9, 4), "r": random(1, 9, 3)}
    outputs = {"y": (FLOAT, (5, 1, 2, 3)), "y_h": (FLOAT, (1, 2, 3))}
    model = model_of("GRU", inputs, opset=1, outputs=outputs, ir_version=3, hidden_size=3, output_sequence=1)
    result = converted(model, target)
    assert [a.s for a in result.graph.node[0].attribute if a.name == "direction"] == [b"forward"]
    assert operators_of(result) == ["GRU"]
