"""Pad at 11, 18 and 19."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

import reducelower
from tests.adapters.models import assert_same, converted, floats, int64s, one, operators, run

X = floats(2, 3, 4)
PADS = int64s(0, 1, 2, 3, 0, 1)
EXPECTED = ((0, 3), (1, 0), (2, 1))


@pytest.mark.parametrize("target", [17, 13, 11, 10, 9])
@pytest.mark.parametrize("mode", ["constant", "edge"])
def test_pads_of_numpy(mode: Any, target: int) -> None:
    made = one("Pad", {"x": X}, 18, constants={"p": PADS}, mode=mode)
    assert operators(assert_same(made, {"x": X}, target, np.pad(X, EXPECTED, mode=mode))) == ["Pad"]


@pytest.mark.parametrize("target", [10, 9])
def test_a_constant_value_becomes_an_attribute(target: int) -> None:
    made = one("Pad", {"x": X}, 13, constants={"p": PADS, "v": np.float32(1.5)})
    result = assert_same(made, {"x": X}, target, np.pad(X, EXPECTED, constant_values=1.5))
    assert not result.graph.initializer


@pytest.mark.parametrize("target", [10, 9, 8, 7])
def test_a_value_that_no_float_holds_is_kept(target: int) -> None:
    data = X.astype(np.float64)
    made = one("Pad", {"x": data}, 13, constants={"p": PADS, "v": np.float64(0.1)})
    assert_same(made, {"x": data}, target, np.pad(data, EXPECTED, constant_values=0.1))


@pytest.mark.parametrize("target", [10, 9, 8, 7])
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
@pytest.mark.parametrize("ranked", [["x"], []])
def test_pads_computed_at_run_time(mode: Any, target: int, ranked: list[str]) -> None:
    pads = int64s(0, 2, 2, 1, 0, 1)
    made = one("Pad", {"x": X, "p": pads}, 13, mode=mode, ranked=ranked)
    assert_same(made, {"x": X, "p": pads}, target, np.pad(X, ((0, 1), (2, 0), (2, 1)), mode=mode))


@pytest.mark.parametrize("target", [10, 9, 8, 7])
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_integers_that_no_float_holds_are_padded(mode: Any, target: int) -> None:
    data = (X * 10).astype(np.int64) + 2**60
    pads = int64s(0, 1, -1, 1, 0, 2)
    made = one("Pad", {"x": data}, 13, constants={"p": pads}, mode=mode)
    assert_same(made, {"x": data}, target, np.pad(data[:, :, 1:], ((0, 1), (1, 0), (0, 2)), mode=mode))


def test_a_value_computed_at_run_time_is_padded_with() -> None:
    feeds = {"x": X, "p": PADS, "v": np.array(7, np.float32)}
    assert_same(one("Pad", feeds, 13), feeds, 9, np.pad(X, EXPECTED, constant_values=7))


@pytest.mark.parametrize("target", [12, 11, 10, 9, 8, 7])
@pytest.mark.parametrize(("mode", "first", "last"), [("constant", "-", "-"), ("edge", "a", "c")])
def test_strings_are_padded_where_pad_takes_numbers_alone(mode: Any, first: str, last: str, target: int) -> None:
    words = np.array(["a", "b", "c"], object)
    made = one("Pad", {"x": words}, 13, constants={"p": int64s(1, 1), "v": np.array("-", object)}, mode=mode)
    (result,) = run(converted(made, target), {"x": words})
    assert result.tolist() == [first, "a", "b", "c", last]


@pytest.mark.parametrize("target", [12, 9, 8])
def test_complex_numbers_are_padded_where_pad_takes_none(target: int) -> None:
    made = one("Pad", {"x": X}, 13, constants={"p": PADS, "v": np.float32(1)})
    for tensor in (made.graph.input[0].type.tensor_type, made.graph.output[0].type.tensor_type):
        tensor.elem_type = TensorProto.COMPLEX64
    value = next(one for one in made.graph.initializer if one.name == "v")
    value.CopyFrom(numpy_helper.from_array(np.complex64(1 + 2j), "v"))
    feeds = {"x": (X + 1j * X).astype(np.complex64)}
    (result,) = ReferenceEvaluator(converted(made, target)).run(None, feeds)
    np.testing.assert_array_equal(result, np.pad(feeds["x"], EXPECTED, constant_values=1 + 2j))


def test_cropping_is_a_slice_where_pads_could_not() -> None:
    made = one("Pad", {"x": X}, 2, pads=[0, -1, 1, 0, 0, -2])
    expected = np.pad(X[:, 1:, :2], ((0, 0), (0, 0), (1, 0)))
    result = reducelower.convert_version(made, 1)
    assert operators(result) == ["Slice", "Pad"]
    assert_same(made, {"x": X}, 7, expected)
    crop, pad = result.graph.node
    attributes = {attribute.name: list(attribute.ints) for attribute in (*crop.attribute, *pad.attribute)}
    assert attributes == {
        "axes": [1, 2], "starts": [1, 0], "ends": [2**31 - 1, -2], "paddings": [0, 0, 1, 0, 0, 0]
    }  # fmt: skip


@pytest.mark.parametrize("dtype", [np.int32, np.int8, np.uint8, np.bool_])
def test_integers_are_padded_as_wider_floats_below_11(dtype: Any) -> None:
    data = (X * 10).astype(dtype)
    made = one("Pad", {"x": data}, 13, constants={"p": PADS, "v": np.array(1, dtype)})
    assert_same(made, {"x": data}, 9, np.pad(data, EXPECTED, constant_values=1))


@pytest.mark.parametrize("given", ["constants", "computed"])
@pytest.mark.parametrize("axes", [[1], [-1, 0]])
def test_axes_that_are_not_named_are_not_padded(axes: list[int], given: str) -> None:
    pads = int64s(*range(1, 1 + 2 * len(axes)))
    expected = [(0, 0)] * 3
    for index, axis in enumerate(axes):
        expected[axis] = (int(pads[index]), int(pads[index + len(axes)]))
    feeds = {"x": X, **({"p": pads} if given == "computed" else {})}
    constants = {**({} if given == "computed" else {"p": pads}), "v": np.float32(7), "a": int64s(*axes)}
    assert_same(one("Pad", feeds, 18, constants=constants), feeds, 17, np.pad(X, expected, constant_values=7))


def test_wrapping_without_a_value_on_some_axes() -> None:
    model = parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 19]>
        g (float[2,3,4] x) => (float[a,b,c] y) <int64[2] p = {1, 2}, int64[1] axes = {-2}>
        { y = Pad<mode = "wrap">(x, p, , axes) }"""
    )
    assert_same(model, {"x": X}, 13, np.pad(X, ((0, 0), (1, 2), (0, 0)), mode="wrap"))


def test_wrapping_gathers_from_the_other_end() -> None:
    made = one("Pad", {"x": X}, 19, constants={"p": PADS}, mode="wrap")
    assert_same(made, {"x": X}, 11, np.pad(X, EXPECTED, mode="wrap"))


@pytest.mark.parametrize("ranked", [[], ["x"]])
def test_wrapping_by_pads_computed_at_run_time(ranked: list[str]) -> None:
    feeds = {"x": X, "p": PADS}
    assert_same(one("Pad", feeds, 19, mode="wrap", ranked=ranked), feeds, 13, np.pad(X, EXPECTED, mode="wrap"))


@pytest.mark.parametrize("given", ["constants", "computed"])
def test_what_is_cropped_is_gone_before_wrapping(given: str) -> None:
    pads = int64s(0, -1, 2, 0, 2, -1)
    feeds = {"x": X, **({"p": pads} if given == "computed" else {})}
    made = one("Pad", feeds, 19, mode="wrap", constants={} if given == "computed" else {"p": pads})
    cropped = X[:, 1:, :-1]
    assert_same(made, feeds, 13, np.pad(cropped, ((0, 0), (0, 2), (2, 0)), mode="wrap"))


def test_attributes_become_inputs_of_the_data_type() -> None:
    data = X.astype(np.float64)
    made = one("Pad", {"x": data}, 10, pads=PADS.tolist(), value=2.0)
    assert_same(made, {"x": data}, 21, np.pad(data, EXPECTED, constant_values=2.0))


def test_a_value_that_a_call_states_becomes_an_input_of_the_data_type() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 7, "local" : 1]>
        g (double[3] x) => (double[n] y) { y = local.Padded<v: float = 0.5>(x) }
        <domain: "local", opset_import: ["" : 7]> Padded <v>(x) => (y)
        { y = Pad<pads: ints = [1, 0], value: float = @v>(x) }"""
    )
    data = floats(3).astype(np.float64)
    assert_same(model, {"x": data}, 21, np.pad(data, (1, 0), constant_values=0.5))
