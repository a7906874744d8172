"""Operators of the first opsets, whose broadcasting had to be asked for.

onnxruntime has no kernels for them below opset 7, so models go up from there and are compared with numpy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

from tests.adapters.models import assert_same, converted, floats, one, refusal, run

A = floats(2, 3, 4, 5)


def _binary(op_type: str, left: np.ndarray, right: np.ndarray, opset: int, **attributes: Any) -> ModelProto:
    kind = helper.np_dtype_to_tensor_dtype(left.dtype)
    values = [helper.make_tensor_value_info(name, kind, value.shape) for name, value in (("a", left), ("b", right))]
    shape = np.broadcast_shapes(left.shape, right.shape) if opset > 6 else left.shape
    output = helper.make_tensor_value_info("y", kind, shape)
    node = helper.make_node(op_type, ["a", "b"], ["y"], **attributes)
    return helper.make_model(
        helper.make_graph([node], "g", values, [output]), opset_imports=[helper.make_opsetid("", opset)], ir_version=4
    )


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((4, 5), None), ((5,), None), ((3, 4), 1), ((2,), 0), ((3,), 1), ((), None), ((1,), 0), ((3, 4), -3)],
)
@pytest.mark.parametrize("target", [7, 21])
def test_dimensions_are_aligned_where_axis_says(shape: tuple[int, ...], axis: int | None, target: int) -> None:
    right = floats(*shape, seed=1)
    attributes = {} if axis is None else {"axis": axis}
    made = _binary("Add", A, right, 6, broadcast=1, **attributes)
    aligned = right
    if axis is not None and right.size > 1:
        aligned = right.reshape(*shape, *[1] * (4 - axis % 4 - len(shape)))
    got = run(converted(made, target), {"a": A, "b": right})[0]
    np.testing.assert_allclose(got, A + aligned, rtol=1e-6)


def test_equal_shapes_need_no_attribute_either_way() -> None:
    made = _binary("Mul", A, A, 6)
    up = converted(made, 7)
    assert not up.graph.node[0].attribute
    assert not converted(up, 6).graph.node[0].attribute


@pytest.mark.parametrize("shape", [(4, 5), (5,), (), (1, 1)])
def test_ends_of_shapes_ask_to_be_broadcast_below_7(shape: tuple[int, ...]) -> None:
    made = converted(_binary("Sub", A, floats(*shape), 7), 6)
    assert made.graph.node[0].attribute[0].name == "broadcast"


def test_the_smaller_operand_comes_second_where_order_does_not_matter() -> None:
    right = floats(2, 3)
    made = converted(_binary("Add", floats(3), right, 7), 6)
    assert list(made.graph.node[0].input) == ["b", "a"]


def test_broadcasting_both_ways_is_refused_below_7() -> None:
    assert "broadcasts shapes" in refusal(_binary("Sub", floats(2, 1), floats(1, 3), 7), 6)


def test_sums_that_broadcast_are_taken_two_by_two_below_8() -> None:
    left, right = floats(2, 3), floats(3, seed=1)
    for op_type, expected in (("Sum", left + right), ("Mean", (left + right) / 2)):
        made = converted(_binary(op_type, left, right, 8), 7)
        np.testing.assert_allclose(run(made, {"a": left, "b": right})[0], expected, rtol=1e-6)


@pytest.mark.parametrize("op_type", ["Max", "Min"])
def test_extremes_that_broadcast_are_spread_first_below_8(op_type: str) -> None:
    left, right = floats(2, 3), floats(3, seed=1)
    left[0, 0], right[1] = np.inf, -np.inf
    made = converted(_binary(op_type, left, right, 8), 7)
    expected = (np.maximum if op_type == "Max" else np.minimum)(left, right)
    np.testing.assert_allclose(run(made, {"a": left, "b": right})[0], expected, rtol=1e-6)


def test_slopes_were_one_per_channel() -> None:
    slopes = np.array([0.1, 0.2, 0.3], np.float32)
    got = run(converted(_binary("PRelu", A, slopes, 6), 7), {"a": A, "b": slopes})[0]
    np.testing.assert_allclose(got, np.where(A < 0, A * slopes[:, None, None], A), rtol=1e-6)
    assert converted(_binary("PRelu", A, slopes.reshape(3, 1, 1), 7), 6).graph.node[0].op_type == "Squeeze"


@pytest.mark.parametrize("target", [7, 9, 16])
def test_a_slope_has_no_more_dimensions_than_its_data(target: int) -> None:
    """Opset 6 took one slope for data without dimensions; since 7 it broadcasts to the data, and never beyond."""
    data, slope = np.array(-2, np.float32), np.array([0.25], np.float32)
    got = run(converted(_binary("PRelu", data, slope, 6), target), {"a": data, "b": slope})[0]
    np.testing.assert_array_equal(got, np.float32(-0.5))


@pytest.mark.parametrize("op_type", ["Max", "Min"])
def test_a_bound_of_one_dimension_gives_a_scalar_one_below_8(op_type: str) -> None:
    data = np.array(3, np.float32)
    made = one(op_type, {"x": data}, 8, constants={"k": np.float32([1])})
    assert_same(made, {"x": data}, 7, np.float32([3 if op_type == "Max" else 1]))
