"""Integers of fewer than eight bits are held in eight where an opset version has none of theirs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from ml_dtypes import int4, uint4
from onnx import ModelProto, TensorProto, checker, helper, numpy_helper, parser
from onnx.external_data_helper import set_external_data

import reducelower
from tests.models import yields

BELOW = (9, 10, 12, 13, 18, 19, 20)
X = np.linspace(-3, 3, 24, dtype=np.float32).reshape(4, 6)

BY_CHANNEL = """<ir_version: 10, opset_import: ["": 21]> g (float[4,6] x) => (float[4,5] y) {
    d = DequantizeLinear <axis = 1> (w, s, z)  y = MatMul (x, d) }"""
BY_BLOCK = """<ir_version: 10, opset_import: ["": 21]> g (float[4,6] x) => (float[4,5] y) {
    t = Transpose (w)  d = DequantizeLinear <axis = 1, block_size = 2> (t, s, z)
    u = Transpose (d)  y = MatMul (x, u) }"""
ACTIVATIONS = """<ir_version: 10, opset_import: ["": 21]> g (float[4,6] x) => (float[4,6] y)
    <float s = {0.25}, int4 z = {3}> { q = QuantizeLinear (x, s, z)  y = DequantizeLinear (q, s, z) }"""


def made(text: str, **initializers: np.ndarray) -> ModelProto:
    model = parser.parse_model(text)
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in initializers.items())
    checker.check_model(model, full_check=True)
    return model


def run(model: ModelProto) -> np.ndarray:
    return yields(model, {"x": X})[0]


def by_channel() -> tuple[ModelProto, np.ndarray]:
    weights, zeros = np.arange(-15, 15).reshape(6, 5) % 16 - 8, np.array([-8, 7, 0, 1, -3])
    scales = np.array([0.5, 0.25, 2, 1, 0.125], np.float32)
    model = made(BY_CHANNEL, w=weights.astype(int4), s=scales, z=zeros.astype(int4))
    return model, X @ ((weights - zeros).astype(np.float32) * scales)


def by_block() -> tuple[ModelProto, np.ndarray]:
    weights, zeros = np.arange(30).reshape(6, 5) * 7 % 16, np.arange(15).reshape(5, 3)
    scales = np.ldexp(np.float32(1), np.arange(15).reshape(5, 3) % 4 - 2)
    model = made(BY_BLOCK, w=weights.astype(uint4), s=scales, z=zeros.astype(uint4))
    dequantized = (weights.T - zeros.repeat(2, 1)).astype(np.float32) * scales.repeat(2, 1)
    return model, X @ dequantized.T


def activations() -> tuple[ModelProto, np.ndarray]:
    return made(ACTIVATIONS), (np.clip(np.round(X / 0.25) + 3, -8, 7) - 3).astype(np.float32) * np.float32(0.25)


CASES = {"by channel": by_channel, "by block": by_block, "activations": activations}


@pytest.mark.parametrize("target", BELOW)
@pytest.mark.parametrize("case", CASES)
def test_every_bit_is_the_same_in_eight_bits(case: str, target: int) -> None:
    model, expected = CASES[case]()
    converted = reducelower.convert_version(model, target)
    checker.check_model(converted, full_check=True)
    np.testing.assert_allclose(run(converted), expected, rtol=1e-6)
    np.testing.assert_array_equal(run(converted), run(model))


@pytest.mark.parametrize(
    "body",
    [
        "q = QuantizeLinear (x, s, z)  r = Reshape (q, n)  y = DequantizeLinear (r, s, z)",
        "c = Cast <to = 22> (x)  y = Cast <to = 1> (c)",
        "h = other.Op (x)  c = CastLike (x, h)  y = DequantizeLinear (c, s, z)",
    ],
)
def test_what_is_made_of_other_values_is_refused(body: str) -> None:
    model = parser.parse_model(f"""<ir_version: 10, opset_import: ["": 21, "other": 1]> g (float[4] x) => (float[4] y)
        <float s = {{0.25}}, int4 z = {{3}}, int64[1] n = {{-1}}> {{ {body} }}""")
    with pytest.raises(reducelower.ConversionError, match="int4"):
        reducelower.convert_version(model, 18)


@pytest.mark.parametrize("target", [9, 18])
@pytest.mark.parametrize("case", CASES)
def test_what_became_of_it_is_verified(case: str, target: int) -> None:
    model, _ = CASES[case]()
    made = reducelower.legalize(model, reducelower.Target(target))
    for site in made.plan.sites:
        assert model.graph.node[site.index].op_type == site.op_type
    assert reducelower.verify(model, made.model, plan=made.plan).verdict == "equivalent"


def test_it_is_said_and_the_weights_are_of_eight_bits() -> None:
    model, expected = by_channel()
    made = reducelower.legalize(model, reducelower.Target(18))
    assert made.plan.notes == ("integers of fewer than 8 bits, which opset 18 does not have, are held in 8",)
    assert {tensor.data_type for tensor in made.model.graph.initializer} == {TensorProto.FLOAT, TensorProto.INT8}
    reducelower.convert_version(model, 18, in_place=True)
    assert model == made.model
    np.testing.assert_array_equal(run(model), expected)


@pytest.mark.parametrize("target", [9, 13, 20])
@pytest.mark.parametrize("held_by", ["a Constant node", "an initializer"])
def test_those_inside_of_branches_are_held_as_well(held_by: str, target: int) -> None:
    values = {True: [1, -8, 7, 0], False: [-1, 2, -3, 4]}
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21]> g (bool c) => (double[4] y) {
            y = If (c) < then_branch = a () => (double[4] p) { p = Cast <to = 11> (k) },
                         else_branch = b () => (double[4] q) { q = Cast <to = 11> (k2) } > }"""
    )
    for attribute, (name, given) in zip(model.graph.node[0].attribute, (("k", True), ("k2", False)), strict=True):
        tensor = helper.make_tensor(name, TensorProto.INT4, [4], values[given])
        if held_by == "an initializer":
            attribute.g.initializer.append(tensor)
        else:
            attribute.g.node.insert(0, helper.make_node("Constant", [], [name], value=tensor))
    result = reducelower.convert_version(model, target)
    checker.check_model(result, full_check=True)
    session = onnxruntime.InferenceSession(result.SerializeToString())
    for given, expected in values.items():
        np.testing.assert_array_equal(session.run(None, {"c": np.array(given)})[0], expected)


def test_from_opset_21_on_they_stay_as_they_are() -> None:
    model, _ = by_channel()
    assert reducelower.convert_version(model, 24).graph.initializer == model.graph.initializer


def test_weights_in_a_file_are_read_from_it(tmp_path: Path) -> None:
    model, expected = by_channel()
    (tmp_path / "weights").write_bytes(model.graph.initializer[0].raw_data)
    set_external_data(model.graph.initializer[0], "weights")
    model.graph.initializer[0].ClearField("raw_data")
    with pytest.raises(reducelower.ConversionError, match="int4"):
        reducelower.convert_version(model, 18)
    np.testing.assert_array_equal(run(reducelower.convert_version(model, 18, base_dir=tmp_path)), expected)


@pytest.mark.parametrize(
    "text",
    [
        "g (int4[3] x) => (float[3] y) <float s = {1}> { y = DequantizeLinear (x, s) }",
        "g (float[3] x) => (float[3] y) <int4[3] w = {1, 2, 3}, float s = {1}> { d = DequantizeLinear (w, s)"
        " u = local.Look (w) y = Add (d, u) }",
    ],
    ids=["an input", "read by another domain"],
)
def test_what_others_see_keeps_its_type_and_is_refused(text: str) -> None:
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["": 21, "local": 1]> {text}')
    with pytest.raises(reducelower.ConversionError, match="does not take int4 at opset 18"):
        reducelower.convert_version(model, 18)
