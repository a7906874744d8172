"""BitShift of signed integers below opset 28, and operators on bits where the target has none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from tests.adapters.models import converted, one, run


def _model(data: np.ndarray, distance: np.ndarray, direction: str, *, constant: bool = True) -> Any:
    kind = helper.np_dtype_to_tensor_dtype(data.dtype)
    values = [helper.make_tensor_value_info(name, kind, data.shape) for name in ("x", "d", "y")]
    held = [helper.make_tensor("d", kind, distance.shape, distance)] if constant else []
    node = helper.make_node("BitShift", ["x", "d"], ["y"], direction=direction)
    graph = helper.make_graph([node], "g", values[:1] if constant else values[:2], values[2:], initializer=held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 28)], ir_version=8)


@pytest.mark.opset(28)
@pytest.mark.parametrize("target", [21, 13, 11, 9])
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_signs_are_kept_and_high_bits_are_lost(dtype: Any, direction: str, target: int) -> None:
    limits = np.iinfo(dtype)
    data = np.array([limits.min, -3, -1, 0, 5, limits.max], dtype)
    distance = np.array([1, 1, 2, 3, 6, 7], dtype)
    expected = np.left_shift(data, distance) if direction == "LEFT" else np.right_shift(data, distance)
    np.testing.assert_array_equal(run(converted(_model(data, distance, direction), target), {"x": data})[0], expected)


def _shifted(number: int, distance: int, direction: str, dtype: Any) -> int:
    """What the page of BitShift 28 says, on Python's integers of any length."""
    bits = np.dtype(dtype).itemsize * 8
    if not 0 <= distance < bits:
        return -1 if direction == "RIGHT" and number < 0 else 0
    result = number << distance if direction == "LEFT" else number >> distance
    low = result & (2**bits - 1)
    return low - 2**bits if np.dtype(dtype).kind == "i" and low >= 2 ** (bits - 1) else low


@pytest.mark.opset(28)
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_any_distance_may_be_computed_at_run_time(dtype: Any, direction: str) -> None:
    limits = np.iinfo(dtype)
    bits = np.dtype(dtype).itemsize * 8
    data = np.array([[limits.min], [-3], [-1], [0], [5], [limits.max]], dtype)
    distance = np.array([0, 1, bits - 1, bits, -1, limits.max, limits.min], dtype)
    kind = helper.np_dtype_to_tensor_dtype(data.dtype)
    shapes = {"x": data.shape, "d": distance.shape, "y": (6, 7)}
    values = [helper.make_tensor_value_info(name, kind, shape) for name, shape in shapes.items()]
    node = helper.make_node("BitShift", ["x", "d"], ["y"], direction=direction)
    graph = helper.make_graph([node], "g", values[:2], values[2:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 28)], ir_version=8)
    (result,) = run(converted(made, 21), {"x": data, "d": distance})
    expected = [[_shifted(int(x), int(d), direction, dtype) for d in distance] for x in data[:, 0]]
    np.testing.assert_array_equal(result, np.array(expected, dtype))


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_unsigned_shifts_below_11(dtype: Any, direction: str) -> None:
    largest, bits = np.iinfo(dtype).max, np.dtype(dtype).itemsize * 8
    feeds = {
        "x": np.array([largest, largest, largest, 1, 0], dtype),
        "d": np.array([0, 1, bits - 1, bits - 1, 3], dtype),
    }
    made = _model(feeds["x"], feeds["d"], direction, constant=False)
    made.opset_import[0].version = 11
    (result,) = ReferenceEvaluator(converted(made, 10)).run(None, feeds)
    expected = [_shifted(int(x), int(d), direction, dtype) for x, d in zip(feeds["x"], feeds["d"], strict=True)]
    np.testing.assert_array_equal(result, np.array(expected, dtype))


INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.mark.parametrize("op_type", ["BitwiseAnd", "BitwiseOr", "BitwiseXor"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits_are_combined_below_18(dtype: Any, op_type: str) -> None:
    limits = np.iinfo(dtype)
    left = np.array([limits.min, limits.max, 0, 5, limits.max // 3, limits.max // 5 * 4], dtype)
    feeds = {"a": left, "b": left[:, None]}
    combine = {"BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor}[op_type]
    (result,) = run(converted(one(op_type, feeds, 18), 13), feeds)
    np.testing.assert_array_equal(result, combine(left, left[:, None]))


@pytest.mark.parametrize("shape", [(0,), (4, 1, 0, 3, 0)])
def test_nothing_is_combined_to_nothing(shape: tuple[int, ...]) -> None:
    feeds = {"a": np.zeros(shape, np.int8), "b": np.zeros((1,), np.int8)}
    (result,) = run(converted(one("BitwiseOr", feeds, 18), 17), feeds)
    assert (result.shape, result.dtype) == (shape, np.int8)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits_are_turned_below_18(dtype: Any) -> None:
    limits = np.iinfo(dtype)
    data = np.array([limits.min, limits.max, 0, 5], dtype)
    (result,) = run(converted(one("BitwiseNot", {"x": data}, 18), 13), {"x": data})
    np.testing.assert_array_equal(result, np.bitwise_not(data))


@pytest.mark.opset(26)
@pytest.mark.parametrize(("dtype", "goal"), [(np.int8, np.uint8), (np.uint16, np.int16), (np.uint32, np.int32)])
def test_bits_are_taken_for_whole_numbers_of_another_sign_below_26(dtype: Any, goal: Any) -> None:
    data = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 5], dtype)
    node = helper.make_node("BitCast", ["x"], ["y"], to=helper.np_dtype_to_tensor_dtype(np.dtype(goal)))
    inputs, outputs = (
        [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), [4])]
        for name, kind in (("x", dtype), ("y", goal))
    )
    graph = helper.make_graph([node], "g", inputs, outputs)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)], ir_version=13)
    (result,) = run(converted(made, 21), {"x": data})
    np.testing.assert_array_equal(result, data.view(goal))
