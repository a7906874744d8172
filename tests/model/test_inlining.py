"""Functions in place of their calls."""

from __future__ import annotations

import numpy as np
from onnx import parser
from onnx.reference import ReferenceEvaluator

from reducelower.model.inlining import inline


def test_defaults_of_functions_are_kept() -> None:
    model = parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 18, "local" : 1]>
        g (float[2] x) => (float[2] a, float[2] b) { a = local.outer (x)  b = local.outer <low = 1.0> (x) }
        <opset_import: ["" : 18, "local" : 1], domain: "local">
        outer <low: float = -1.0> (v) => (w) { w = local.inner <low: float = @low> (v) }
        <opset_import: ["" : 18], domain: "local">
        inner <low: float = 0.0, alpha: float = 0.5> (v) => (w) {
            c = Constant <value_float: float = @low> ()
            m = Max (v, c)
            w = LeakyRelu <alpha: float = @alpha> (m)
        }"""
    )
    inline(model)
    assert not model.functions
    given = np.array([-4.0, 3.0], np.float32)
    found = ReferenceEvaluator(model).run(None, {"x": given})
    assert [each.tolist() for each in found] == [[-0.5, 3.0], [1.0, 3.0]]
