"""A model changed in place, and one that is only looked at: both come to what a new model comes to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

import reducelower


def large_table() -> ModelProto:
    """Axes that are looked up in a constant of more elements than shape inference is given."""
    table = np.zeros(2000, np.int64)
    table[1500] = 1
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18]>
        g (float[2,3,4] x) => (float[2,4] y) <int64[1] i = {1500}>
        { axes = Gather (table, i)  y = ReduceSum <keepdims = 0> (x, axes) }"""
    )
    model.graph.initializer.append(numpy_helper.from_array(table, "table"))
    return model


def four_bits() -> ModelProto:
    """Weights of four bits, which the target's opset version does not have."""
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[2,64] x) => (float[2,64] y) <float s = {0.5}> { d = DequantizeLinear (w, s)  y = MatMul (x, d) }"""
    )
    values = np.random.default_rng(1).integers(-8, 8, 4096)
    model.graph.initializer.append(helper.make_tensor("w", TensorProto.INT4, [64, 64], values))
    return model


def stale_type() -> ModelProto:
    """A stated shape that is not what the node yields."""
    return parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18]>
        g (float[2,3] x) => (float[2,1] y) <float[2,5] t, int64[1] one = {1}>
        { t = Relu (x)  y = ReduceMax (t, one) }"""
    )


def much_beside() -> ModelProto:
    """Weights that stay, constants that go and come, and all that may stand beside a graph."""
    model = parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 18, "local" : 1], producer_name: "p", doc_string: "d">
        g (float[2,64] x) => (float[2,1] y) <int64[1] one = {1}>
        { z = local.twice (x)  v = MatMul (z, w)  y = ReduceLogSumExp (v, one) }
        <opset_import: ["" : 18], domain: "local"> twice (a) => (b) { b = Add (a, a) }"""
    )
    weights = np.random.default_rng(2).standard_normal((64, 64), np.float32)
    model.graph.initializer.insert(0, numpy_helper.from_array(weights, "w"))
    model.graph.doc_string = "of the graph"
    model.metadata_props.add(key="k", value="v")
    annotation = model.graph.quantization_annotation.add(tensor_name="z")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="w")
    model.training_info.add().initialization.name = "nothing"
    return model


@pytest.mark.parametrize(
    ("case", "target"),
    [(large_table, 11), (four_bits, 17), (stale_type, 13), (much_beside, 13), (much_beside, 9), (much_beside, 21)],
    ids=lambda given: getattr(given, "__name__", str(given)),
)
def test_all_three_come_to_the_same(case: Callable[[], ModelProto], target: int) -> None:
    model = case()
    made = reducelower.legalize(model, reducelower.Target(target), rules="stable")
    plan = made.plan
    looked_at = reducelower.check(model, target, rules="stable")
    assert (looked_at.sites, looked_at.ir_version, looked_at.notes) == (plan.sites, plan.ir_version, plan.notes)
    assert model == case()
    assert reducelower.convert_version(model, target, rules="stable", in_place=True) is model
    assert model == made.model
