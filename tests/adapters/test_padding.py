"""Pad at 11, 18 and 19."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

import reducelower
from tests.adapters.models import assert_same, converted, floats, int64s, one, operators

X = floats(2, 3, 4)
PADS = int64s(0, 1, 2, 3, 0, 1)
EXPECTED = ((0, 3), (1, 0), (2, 1))


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


def test_a_value_that_a_call_states_becomes_an_input_of_the_data_type() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 7, "local" : 1]>
        g (double[3] x) => (double[n] y) { y = local.Padded<v: float = 0.5>(x) }
        <domain: "local", opset_import: ["" : 7]> Padded <v>(x) => (y)
        { y = Pad<pads: ints = [1, 0], value: float = @v>(x) }"""
    )
    data = floats(3).astype(np.float64)
    assert_same(model, {"x": data}, 21, np.pad(data, (1, 0), constant_values=0.5))


@pytest.mark.parametrize("amount", [70_000, 2**62])
def test_far_places_are_no_table_in_the_model(amount: int) -> None:
    made = one("Pad", {"x": X[0]}, 19, constants={"p": int64s(0, amount, 0, 0)}, mode="wrap")
    result = reducelower.convert_version(made, 13)
    assert result.ByteSize() < 10_000
    if amount < 2**62:
        (found,) = ReferenceEvaluator(result).run(None, {"x": X[0]})
        np.testing.assert_array_equal(found, np.pad(X[0], ((0, 0), (amount, 0)), mode="wrap"))
