"""Bernoulli below opset 15: what is certain is certain, and what is not happens as often as it should."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from tests.models import converted, model, operators, yields


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_a_chance_of_one_always_happens_and_one_of_zero_never(dtype: type) -> None:
    chances = np.array([[0, 1, 1], [1, 0, 0]], dtype)
    given = model("(float[2,3] x) => (int64[2,3] y) { y = Bernoulli <dtype = 7> (x) }", 15)
    given.graph.input[0].type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(chances.dtype)
    np.testing.assert_array_equal(yields(converted(given, 13), {"x": chances})[0], chances.astype(np.int64))


def test_a_chance_of_a_quarter_happens_a_quarter_of_the_time() -> None:
    chances = np.full((20_000,), 0.25, np.float32)
    given = model("(float[20000] x) => (float[20000] y) { y = Bernoulli <seed = 3.0> (x) }", 22, 10)
    assert 0.23 < yields(converted(given, 11), {"x": chances})[0].mean() < 0.27


def test_truth_values_are_yielded_as_they_are() -> None:
    chances = np.array([1, 0], np.float32)
    made = converted(model("(float[2] x) => (bool[2] y) { y = Bernoulli <dtype = 9> (x) }", 15), 9)
    assert operators(made) == ["RandomUniformLike", "Less"]
    np.testing.assert_array_equal(yields(made, {"x": chances})[0], [True, False])
