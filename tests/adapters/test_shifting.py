"""BitShift of signed integers below opset 28."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.adapters.models import converted, refusal, run

pytestmark = pytest.mark.opset(28)


def _model(data: np.ndarray, distance: np.ndarray, direction: str, *, constant: bool = True) -> Any:
    kind = helper.np_dtype_to_tensor_dtype(data.dtype)
    values = [helper.make_tensor_value_info(name, kind, data.shape) for name in ("x", "d", "y")]
    held = [helper.make_tensor("d", kind, distance.shape, distance)] if constant else []
    node = helper.make_node("BitShift", ["x", "d"], ["y"], direction=direction)
    graph = helper.make_graph([node], "g", values[:1] if constant else values[:2], values[2:], initializer=held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 28)], ir_version=8)


@pytest.mark.parametrize("target", [21, 13, 11])
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_signs_are_kept_and_high_bits_are_lost(dtype: Any, direction: str, target: int) -> None:
    limits = np.iinfo(dtype)
    data = np.array([limits.min, -3, -1, 0, 5, limits.max], dtype)
    distance = np.array([1, 1, 2, 3, 6, 7], dtype)
    expected = np.left_shift(data, distance) if direction == "LEFT" else np.right_shift(data, distance)
    np.testing.assert_array_equal(run(converted(_model(data, distance, direction), target), {"x": data})[0], expected)


def test_distances_computed_at_run_time_are_refused() -> None:
    data = np.array([1], np.int8)
    assert "distances that are not known" in refusal(_model(data, data, "LEFT", constant=False), 21)
