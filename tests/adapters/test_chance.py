"""Bernoulli below opset 15: what is certain is certain, and what is not happens as often as it should."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from tests.adapters.single import converted, model_of, yields


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_a_chance_of_one_always_happens_and_one_of_zero_never(dtype: type) -> None:
    chances = np.array([[0, 1, 1], [1, 0, 0]], dtype)
    model = model_of("Bernoulli", {"x": chances}, opset=15, outputs={"y": (TensorProto.INT64, None)}, dtype=7)
    np.testing.assert_array_equal(yields(converted(model, 13), {"x": chances})[0], chances.astype(np.int64))


def test_a_chance_of_a_quarter_happens_a_quarter_of_the_time() -> None:
    chances = np.full((20_000,), 0.25, np.float32)
    model = model_of("Bernoulli", {"x": chances}, opset=22, seed=3.0)
    assert 0.23 < yields(converted(model, 11), {"x": chances})[0].mean() < 0.27


def test_truth_values_are_yielded_as_they_are() -> None:
    chances = np.array([1, 0], np.float32)
    model = model_of("Bernoulli", {"x": chances}, opset=15, outputs={"y": (TensorProto.BOOL, None)}, dtype=9)
    made = converted(model, 9)
    assert [node.op_type for node in made.graph.node] == ["RandomUniformLike", "Less"]
    np.testing.assert_array_equal(yields(made, {"x": chances})[0], [True, False])
