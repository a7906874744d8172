"""SequenceMap where its graph states less than the schema's body asks for."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import checker, parser

import reducelower
from tests.adapters.models import run


@pytest.mark.parametrize("target", [16, 15, 13])
def test_what_a_mapped_graph_yields_needs_no_stated_type(target: int) -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[3,4] x, double[2] w) => (float[3] y, double[6] z) {
            s = SplitToSequence <axis = 0, keepdims = 0> (x)
            t, u = SequenceMap <body = each (float[a] e, double[b] f) => (o, f_out) {
                e2 = Mul(e, e)
                o = ReduceSum(e2)
                f_out = Neg(f)
            }> (s, w)
            y = ConcatFromSequence <axis = 0> (t)
            z = ConcatFromSequence <axis = 0> (u)
        }"""
    )
    for value in next(node for node in model.graph.node if node.op_type == "SequenceMap").attribute[0].g.output:
        value.ClearField("type")
    next(node for node in model.graph.node if node.op_type == "SequenceMap").attribute[0].g.doc_string = "marks"
    data, weights = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([1.5, -2])
    converted = reducelower.convert_version(model, target)
    checker.check_model(converted, full_check=True)
    assert [node.attribute[0].g.doc_string for node in converted.graph.node if node.op_type == "Loop"] == ["marks"]
    found, negated = run(converted, {"x": data, "w": weights})
    np.testing.assert_array_equal(found, (data * data).sum(axis=1))
    np.testing.assert_array_equal(negated, np.tile(-weights, 3))
