"""Clip, Max, Min, Relu, Equal, TopK and ArgMax of element types and bounds that came late."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import onnx.parser
import onnxruntime
import pytest

import reducelower
from tests.adapters.models import assert_same, converted, floats, int64s, one, operators, run

INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32)
EXTREMES = {dtype: np.array([np.iinfo(dtype).min, 0, 3, 7, np.iinfo(dtype).max], dtype) for dtype in INTEGERS}


@pytest.mark.parametrize("target", [11, 9])
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8])
def test_clip_of_integers(dtype: Any, target: int) -> None:
    data = EXTREMES[dtype]
    made = one("Clip", {"x": data}, 13, constants={"low": np.array(1, dtype), "high": np.array(6, dtype)})
    assert_same(made, {"x": data}, target, np.clip(data, 1, 6))


@pytest.mark.parametrize("dtype", [np.int8, np.int64])
def test_clip_of_integers_with_one_bound(dtype: Any) -> None:
    data = EXTREMES[dtype]
    made = one("Clip", {"x": data}, 13, constants={"high": np.array(6, dtype)}, inputs=["x", "", "high"])
    assert_same(made, {"x": data}, 9, np.minimum(data, 6).astype(dtype))


def test_constant_bounds_become_attributes() -> None:
    data = floats(20)
    made = one("Clip", {"x": data}, 13, constants={"low": np.float32(-0.5), "high": np.float32(0.5)})
    result = assert_same(made, {"x": data}, 9, np.clip(data, -0.5, 0.5))
    assert operators(result) == ["Clip"]


def test_computed_bounds_become_the_larger_and_the_smaller_of_two() -> None:
    feeds = {"x": floats(20), "low": np.array(-0.5, np.float32), "high": np.array(0.5, np.float32)}
    made = one("Clip", feeds, 13)
    assert operators(assert_same(made, feeds, 9, np.clip(feeds["x"], -0.5, 0.5))) == ["Max", "Min"]


def test_a_minimum_above_the_maximum_yields_the_maximum() -> None:
    data = floats(20)
    made = one("Clip", {"x": data}, 13, constants={"low": np.float32(2), "high": np.float32(1)})
    assert_same(made, {"x": data}, 9, np.ones(20, np.float32))


@pytest.mark.parametrize("target", [11, 9])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
@pytest.mark.parametrize("op_type", ["Max", "Min"])
def test_max_and_min_of_integers(op_type: str, dtype: Any, target: int) -> None:
    limits = np.iinfo(dtype)
    one_side = np.array([limits.min, limits.max, 5, limits.max - 1], dtype)
    other = np.array([limits.max, limits.max - 1, 4, limits.max], dtype)
    feeds = {"a": one_side, "b": other, "c": np.array([3, 3, 3, 3], dtype)}
    fold = np.maximum if op_type == "Max" else np.minimum
    made = one(op_type, feeds, 13)
    result = converted(made, target)
    if dtype is not np.uint64:  # onnxruntime compares no uint64
        assert_same(made, feeds, target, fold(fold(one_side, other), feeds["c"]))
    assert result.opset_import[0].version == target


@pytest.mark.parametrize("target", [13, 11, 9])
@pytest.mark.parametrize("dtype", [np.int32, np.int8])
def test_relu_of_integers(dtype: Any, target: int) -> None:
    made = one("Relu", {"x": EXTREMES[dtype]}, 14)
    assert_same(made, {"x": EXTREMES[dtype]}, target, np.maximum(EXTREMES[dtype], 0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.uint8, np.bool_])
def test_equal_below_11(dtype: Any) -> None:
    left = np.array([0, 1, 1, 0], dtype)
    right = np.array([0, 1, 0, 1], dtype)
    if left.dtype.kind == "f":
        left = np.append(left, [np.nan, np.inf, np.inf, -0.0]).astype(dtype)
        right = np.append(right, [np.nan, np.inf, -np.inf, 0.0]).astype(dtype)
    feeds = {"a": left, "b": right}
    assert_same(one("Equal", feeds, 13), feeds, 9, left == right)


@pytest.mark.parametrize("target", [10, 9])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("largest", [0, 1])
def test_top_k_of_either_end(largest: int, dtype: Any, target: int) -> None:
    data = np.array([[3, -1, 3, 7, -9], [0, 0, 2, -2, 1]], dtype)
    if dtype is np.int32:
        data[0, 0] = np.iinfo(dtype).min
    made = one("TopK", {"x": data}, 11, outputs=["v", "i"], constants={"k": int64s(3)}, largest=largest)
    order = np.argsort(data if not largest else -data.astype(np.float64), axis=-1, kind="stable")[:, :3]
    assert_same(made, {"x": data}, target, np.take_along_axis(data, order, -1), order)


@pytest.mark.parametrize("ranked", [[], ["x"]])
@pytest.mark.parametrize("op_type", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize(("axis", "keepdims"), [(1, 1), (-1, 0), (0, 1)])
def test_the_last_of_equal_ones(op_type: str, axis: int, keepdims: int, ranked: list[str]) -> None:
    data = np.array([[1, 3, 3, 0, 0], [2, 2, 1, 1, 2]], np.float32)
    made = one(op_type, {"x": data}, 13, ranked=ranked, axis=axis, keepdims=keepdims, select_last_index=1)
    best = (np.argmax if op_type == "ArgMax" else np.argmin)(np.flip(data, axis), axis=axis)
    expected = data.shape[axis] - 1 - best
    assert_same(made, {"x": data}, 11, np.expand_dims(expected, axis) if keepdims else expected)


def test_a_count_that_a_call_of_a_function_states_becomes_a_list_of_one() -> None:
    model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 9, "local" : 1]>
    g (float[4] x) => (float[2] y, int64[2] i) { y, i = local.f <count = 2> (x) }
    <domain: "local", opset_import: ["" : 9]>
    f <count> (x) => (y, i) { y, i = TopK <k: int = @count> (x) }
    """)
    values, places = run(converted(model, 13), {"x": np.array([1, 4, 2, 3], np.float32)})
    np.testing.assert_array_equal(values, [4, 3])
    np.testing.assert_array_equal(places, [1, 3])


def test_the_largest_none_are_empty_below_opset_10() -> None:
    k = {"k": np.array([0])}
    for feeds, constants in (({"x": floats(2, 3)}, k), ({"x": floats(2, 0)} | k, {})):
        made = one("TopK", feeds, 11, outputs=["y", "i"], constants=constants, axis=1)
        assert_same(made, feeds, 9, np.zeros((2, 0), np.float32), np.zeros((2, 0), np.int64))


@pytest.mark.parametrize("target", [10, 9])
@pytest.mark.parametrize("largest", [1, 0])
@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_numbers_that_no_float_holds_are_put_in_order(axis: int, largest: int, target: int) -> None:
    random = np.random.default_rng(5)
    data = random.integers(-(2**63), 2**63, (3, 4, 5), dtype=np.int64)
    data[0] = 2**60 + random.integers(-2, 3, (4, 5))  # a double does not tell these apart
    data[:, 1, 2:] = [np.iinfo(np.int64).min, -1, np.iinfo(np.int64).max]
    key = -1 - data if largest else data
    places = np.argsort(key, axis=axis, kind="stable").take(range(3), axis=axis)
    expected = np.take_along_axis(data, places, axis)
    made = one("TopK", {"x": data}, 13, constants={"k": np.array([3])}, outputs=["y", "i"], axis=axis, largest=largest)
    values, found = run(reducelower.convert_version(made, target), {"x": data})
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(found, places)


@pytest.mark.parametrize("ranked", [[], ["x"]])
@pytest.mark.parametrize("given", ["constants", "computed"])
@pytest.mark.parametrize("largest", [1, 0])
@pytest.mark.parametrize(
    ("shape", "axis", "count"),
    [((2, 3, 0), 1, 3), ((2, 0, 3), 1, 0), ((0, 3), 1, 2), ((0,), 0, 0), ((2, 3), 0, 0), ((3, 2), -2, 2)],
)
def test_the_largest_of_none_and_none_of_the_largest_are_empty(
    shape: tuple[int, ...], axis: int, count: int, largest: int, given: str, ranked: list[str]
) -> None:
    data = np.random.default_rng(6).integers(-(2**63), 2**63, shape, dtype=np.int64)
    if not data.size and onnxruntime.__version__.startswith("1.30."):
        pytest.skip("TopK of no rows ends the process of onnxruntime 1.30")
    places = np.argsort(data if not largest else -1 - data, axis=axis, kind="stable").take(range(count), axis=axis)
    k = {"k": int64s(count)}
    feeds = {"x": data} | (k if given == "computed" else {})
    made = one("TopK", feeds, 18, constants=k if given == "constants" else None, inputs=["x", "k"],
               outputs=["y", "i"], axis=axis, largest=largest, ranked=ranked)  # fmt: skip
    for target in (10, 9):
        assert_same(made, feeds, target, np.take_along_axis(data, places, axis), places)


def test_how_many_are_taken_may_be_computed_where_all_can_be_put_in_order() -> None:
    data = np.random.default_rng(5).normal(size=(3, 4)).astype(np.float32)
    feeds = {"x": data, "k": np.array([2])}
    made = one("TopK", feeds, 11, outputs=["y", "i"], axis=1)
    values, found = run(reducelower.convert_version(made, 9), feeds)
    np.testing.assert_array_equal(values, -np.sort(-data, axis=1)[:, :2])
    np.testing.assert_array_equal(found, np.argsort(-data, axis=1)[:, :2])


WORDS = np.array([["a", "b", "a"], ["", "Ä", "x,y"]], object)


@pytest.mark.parametrize("ranked", [[], ["a", "b"]])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        (WORDS, WORDS[::-1].copy()),
        (WORDS, np.array("a", object)),
        (WORDS, np.array([["a"], ["Ä"]], object)),
        (np.zeros((3, 0), object), np.array(["a"], object)),
    ],
)
def test_strings_are_compared_by_their_numbers_below_19(left: Any, right: Any, ranked: list[str]) -> None:
    feeds = {"a": left, "b": right}
    made = one("Equal", feeds, 19, ranked=ranked)
    for target in (18, 11):
        (result,) = run(converted(made, target), feeds)
        np.testing.assert_array_equal(result, np.equal(left, right).astype(bool))


def test_strings_cannot_be_told_apart_below_11() -> None:
    with pytest.raises(reducelower.ConversionError, match="does not take string at opset 10"):
        reducelower.convert_version(one("Equal", {"a": WORDS, "b": WORDS}, 19), 10)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize(("shape", "axis"), [((7,), 0), ((3, 5), -1), ((4, 2, 3), 0), ((2, 4, 3), 1)])
def test_how_many_and_how_long_may_both_be_known_at_run_time_only(
    shape: tuple[int, ...], axis: int, largest: int
) -> None:
    data = np.random.default_rng(5).integers(-2, 3, shape).astype(np.float32)
    data.reshape(-1)[:3] = -np.inf, np.inf, -np.inf
    feeds = {"x": data, "k": int64s(2)}
    made = one("TopK", feeds, 11, outputs=["y", "i"], axis=axis, largest=largest, ranked=["x"])
    order = np.argsort(-data if largest else data, axis=axis, kind="stable").take([0, 1], axis)
    assert_same(made, feeds, 9, np.take_along_axis(data, order, axis), order)


def test_thousands_of_values_of_one_kind_are_named_in_linear_time() -> None:
    """Each new name was searched for from the first on: 10,000 operands took half a minute, which is 2 s now."""
    node = onnx.helper.make_node("Max", ["x"] * 10_000, ["y"])
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.INT64, [2]) for name in "xy"]
    graph = onnx.helper.make_graph([node], "g", values[:1], values[1:])
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=7)
    start = time.process_time()
    result = reducelower.convert_version(made, 9)
    assert time.process_time() - start < 15
    names = [name for node in result.graph.node for name in node.output]
    assert len(names) == len(set(names)) > 10_000
