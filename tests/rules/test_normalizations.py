"""Normalizations taken apart: in models of every opset version that has them, with what nodes may leave out."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, checker, defs, shape_inference
from onnx.reference import ReferenceEvaluator

import reducelower
from reducelower.rulebook import load_book
from tests.models import one
from tools.exact.normalizations import NORMALIZATIONS, exact_normalization

FLOAT, HALF, DOUBLE = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "GroupNormalization": {"num_groups": 2, "epsilon": 1e-5},
    "InstanceNormalization": {"epsilon": 1e-5},
    "LayerNormalization": {"axis": -1, "epsilon": 1e-5},
    "LogSoftmax": {"axis": 1},
    "LpNormalization": {"axis": 1, "p": 2},
    "MeanVarianceNormalization": {"axes": [0, 2]},
    "RMSNormalization": {"axis": 1, "epsilon": 1e-5},
    "Softmax": {"axis": 1},
    "GlobalLpPool": {"p": 3},
}
OPSETS = {"GroupNormalization": (21, 23), "LayerNormalization": (17, 18, 21), "RMSNormalization": (23,)}


def single(op_type: str, opset: int, inputs: list[np.ndarray], outputs: int = 1, **more: Any) -> ModelProto:
    attributes = {**ATTRIBUTES.get(op_type, {}), **more}
    return one(op_type, named(inputs), opset, outputs=[f"y{at}" for at in range(outputs)], **attributes)


def named(inputs: list[np.ndarray]) -> dict[str, np.ndarray]:
    return {f"x{at}": value for at, value in enumerate(inputs)}


def operands(op_type: str, kind: Any = np.float32, scale: float = 1.0) -> list[np.ndarray]:
    random = np.random.default_rng(1)
    data = (random.normal(0.5, 1, (2, 4, 6)) * scale).astype(kind)
    vector = (4, 6) if op_type == "RMSNormalization" else (6,) if op_type == "LayerNormalization" else (4,)
    return [data] + [random.normal(1, 0.2, vector).astype(kind) for _ in defs.get_schema(op_type).inputs[1:]]


def run(model: ModelProto, inputs: list[np.ndarray]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, named(inputs)))


def exact(op_type: str, inputs: list[np.ndarray]) -> np.ndarray:
    return exact_normalization(op_type, inputs, ATTRIBUTES.get(op_type, {})).astype(np.float64)


@pytest.mark.parametrize("rules", ["spec", "stable"])
@pytest.mark.parametrize(
    ("op_type", "opset"), [(op, opset) for op in sorted(NORMALIZATIONS) for opset in OPSETS.get(op, (9, 13, 18))]
)
def test_a_normalization_becomes_reductions_at_every_opset(op_type: str, opset: int, rules: str) -> None:
    inputs = operands(op_type)
    if op_type in ("Softmax", "LogSoftmax") and opset < 13:
        inputs = [inputs[0][:, :, 0]]  # before 13, the axes from this one on
    model = single(op_type, opset, inputs)
    expanded = reducelower.expand(model, ops=[op_type], rules=rules)
    checker.check_model(expanded, full_check=True)
    kinds = {node.op_type for node in expanded.graph.node}
    assert op_type not in kinds
    assert any(kind.startswith("Reduce") for kind in kinds)
    np.testing.assert_allclose(run(expanded, inputs)[0], exact(op_type, inputs), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("op_type", sorted(NORMALIZATIONS))
def test_every_normalization_is_kept_unless_it_is_named(op_type: str) -> None:
    model = single(op_type, 23, operands(op_type))
    assert reducelower.expand(model, rules="stable") == model


@pytest.mark.parametrize("op_type", sorted(NORMALIZATIONS))
def test_without_float_no_float_is_computed(op_type: str) -> None:
    inputs = operands(op_type, np.float16)
    model = single(op_type, 23, inputs)
    expanded = reducelower.expand(model, ops=[op_type], rules="stable", without_types=["float", "double"])
    checker.check_model(expanded, full_check=True)
    inferred = shape_inference.infer_shapes(expanded, strict_mode=True).graph
    assert {value.type.tensor_type.elem_type for value in inferred.value_info} <= {HALF, TensorProto.INT64}
    assert {tensor.data_type for tensor in expanded.graph.initializer} <= {HALF, TensorProto.INT64}


@pytest.mark.parametrize("op_type", ["LayerNormalization", "InstanceNormalization", "GroupNormalization"])
def test_large_float16_numbers_stay_finite_where_every_operator_rounds(op_type: str) -> None:
    inputs = operands(op_type, np.float16, scale=1e4)
    model = single(op_type, 23, inputs)
    expanded = reducelower.expand(model, ops=[op_type], rules="stable", without_types=["float"])
    with np.errstate(all="ignore"):
        (found,) = ReferenceEvaluator(expanded).run(None, named(inputs))
    np.testing.assert_allclose(np.asarray(found, np.float64), exact(op_type, inputs), atol=4 * 2.0**-9)


def test_stash_type_says_what_float16_is_computed_in() -> None:
    inputs = operands("LayerNormalization", np.float16)
    model = single("LayerNormalization", 18, inputs)
    expanded = reducelower.expand(model, ops=["LayerNormalization"], rules="stable")
    casts = [node.attribute[0].i for node in expanded.graph.node if node.op_type == "Cast"]
    assert casts == [FLOAT, HALF]
    bfloat = single("LayerNormalization", 18, inputs, stash_type=TensorProto.BFLOAT16)
    expanded = reducelower.expand(bfloat, ops=["LayerNormalization"], rules="stable")
    casts = [node.attribute[0].i for node in expanded.graph.node if node.op_type == "Cast"]
    assert casts == [TensorProto.BFLOAT16, HALF]


@pytest.mark.parametrize(("op_type", "opset"), [("LayerNormalization", 18), ("RMSNormalization", 23)])
def test_statistics_in_float16_neither_overflow_nor_lose_epsilon(op_type: str, opset: int) -> None:
    rows = [[1, 1, 1, 1], [0, 0, 0, 0], [300, -300, 1, 0], [3e4, 2e4, -3e4, 1]]
    inputs = [np.array(rows, np.float16), np.ones(4, np.float16)]
    model = single(op_type, opset, inputs, stash_type=HALF)
    for attribute in model.graph.node[0].attribute:
        if attribute.name == "epsilon":
            attribute.f = 1e-12  # zero as float16
        elif attribute.name == "axis":
            attribute.i = -1
    expanded = reducelower.expand(model, ops=[op_type], rules="stable")
    casts = {node.attribute[0].i for node in expanded.graph.node if node.op_type == "Cast"}
    assert casts <= {HALF}  # of counts
    with np.errstate(all="ignore"):
        (found,) = ReferenceEvaluator(expanded).run(None, named(inputs))
    wide = np.array(rows)
    wide -= wide.mean(-1, keepdims=True) if op_type == "LayerNormalization" else 0
    right = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-12)
    np.testing.assert_allclose(np.asarray(found, np.float64), right, atol=4 * 2.0**-11)


@pytest.mark.parametrize("rules", ["spec", "stable"])
def test_layer_normalization_without_bias_and_with_its_statistics(rules: str) -> None:
    inputs = operands("LayerNormalization")
    model = single("LayerNormalization", 17, inputs[:2], outputs=3)
    expanded = reducelower.expand(model, ops=["LayerNormalization"], rules=rules)
    checker.check_model(expanded, full_check=True)
    found, mean, inverse = run(expanded, inputs[:2])
    wide = inputs[0].astype(np.float64)
    np.testing.assert_allclose(found, exact("LayerNormalization", inputs[:2]), rtol=2e-5, atol=2e-6)
    np.testing.assert_allclose(mean, wide.mean(-1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(inverse, 1 / np.sqrt(wide.var(-1, keepdims=True) + 1e-5), rtol=1e-5)
    alone = reducelower.expand(single("LayerNormalization", 17, inputs[:2]), ops=["LayerNormalization"], rules=rules)
    assert "Reciprocal" not in {node.op_type for node in alone.graph.node}


@pytest.mark.parametrize("end", [np.inf, -np.inf])
def test_the_mean_of_infinite_data_is_infinite(end: float) -> None:
    inputs = operands("LayerNormalization")[:2]
    inputs[0][0, 0, 0] = end
    model = single("LayerNormalization", 17, inputs, outputs=2)
    _, mean = run(reducelower.expand(model, ops=["LayerNormalization"], rules="stable"), inputs)
    np.testing.assert_allclose(mean, inputs[0].astype(np.float64).mean(-1, keepdims=True), rtol=1e-5)


def test_float_is_not_cast_to_float() -> None:
    model = single("LayerNormalization", 17, operands("LayerNormalization"))
    for rules in ("spec", "stable"):
        expanded = reducelower.expand(model, ops=["LayerNormalization"], rules=rules)
        casts = {node.attribute[0].i for node in expanded.graph.node if node.op_type == "Cast"}
    assert casts <= {HALF}  # of counts


def test_a_large_mean_costs_no_digits_of_the_deviation() -> None:
    inputs = operands("LayerNormalization")
    inputs[0] = inputs[0] + np.float32(4096)
    model = single("LayerNormalization", 17, inputs)
    right = exact("LayerNormalization", inputs)
    stable = run(reducelower.expand(model, ops=["LayerNormalization"], rules="stable"), inputs)[0]
    spec = run(reducelower.expand(model, ops=["LayerNormalization"], rules="spec"), inputs)[0]
    assert np.abs(stable - right).max() < 1e-5
    assert not np.abs(spec - right).max() < 1e-2


@pytest.mark.parametrize("rules", ["spec", "stable"])
@pytest.mark.parametrize("kind", [np.float32, np.float16])
@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
def test_beside_an_infinite_maximum_there_are_no_numbers(op_type: str, kind: Any, rules: str) -> None:
    """The page subtracts the maximum, and infinity less infinity is no number, nor is a sum with that in it."""
    rows = [[1, np.inf, 2], [np.inf, np.inf, -np.inf], [-np.inf] * 3, [-np.inf, 0, 1], [np.nan, 0, 1]]
    data = np.array(rows, kind)
    model = single(op_type, 13, [data])
    found = run(reducelower.expand(model, ops=[op_type], rules=rules), [data])[0]
    with np.errstate(all="ignore"):
        difference = data.astype(np.float64) - data.astype(np.float64).max(axis=1, keepdims=True)
        right = difference - np.log(np.exp(difference).sum(axis=1, keepdims=True))
        right = np.exp(right) if op_type == "Softmax" else right
    np.testing.assert_allclose(found.astype(np.float64), right, rtol=4 * np.finfo(kind).eps)


@pytest.mark.parametrize("rules", ["spec", "stable"])
@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_the_smallest_magnitudes_have_a_norm(kind: Any, rules: str) -> None:
    least = np.finfo(kind).smallest_subnormal
    data = np.array([[least, 0, -least, 0], [3 * least, least, 0, 0], [0, 0, 0, 0]], kind)
    model = single("LpNormalization", 22, [data])
    model.graph.node[0].attribute[1].i = 1  # p
    found = run(reducelower.expand(model, ops=["LpNormalization"], rules=rules), [data])[0]
    np.testing.assert_array_equal(found, np.array([[0.5, 0, -0.5, 0], [0.75, 0.25, 0, 0], [0] * 4], kind))


def test_the_operators_known_are_those_with_rules() -> None:
    for name in ("spec", "stable"):
        assert {op for op in load_book(name).operators if not op.startswith("Reduce")} == NORMALIZATIONS
