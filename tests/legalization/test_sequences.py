"""The plan of a model whose sequences are taken apart; `cases/sequences.toml` has what becomes of them."""

from __future__ import annotations

import numpy as np
from onnx import parser

import reducelower
from tests.models import run


def test_the_plan_tells_of_the_nodes_that_the_model_has() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 11]> g (float[4,3,2] x) => (float[3,2,1] z) <int64 two = {2}> {
            s = SplitToSequence <keepdims = 0> (x)  y = SequenceAt (s, two)  z = Unsqueeze <axes = [-1]> (y) }"""
    )
    legal = reducelower.legalize(model, reducelower.Target(opset=9))
    assert [(site.op_type, site.index) for site in legal.plan.sites] == [("Unsqueeze", 2)]
    assert legal.plan.carried == 0
    assert any("taken apart" in note for note in legal.plan.notes)
    x = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
    np.testing.assert_array_equal(run(legal.model, {"x": x})[0], x[2][..., None])
