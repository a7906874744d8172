"""Defaults that are frozen, though callers may override them; `cases/overridden.toml` has those that are not."""

from __future__ import annotations

import numpy as np
from onnx import parser

import reducelower
from reducelower.verification import verify
from tests.models import floats, run


def test_types_follow_from_defaults_that_are_frozen_and_the_proof_sees_it() -> None:
    source = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[1,1,4,4] x, int64[4] k) => (float[a,b,c,d] y)
        <int64[4] k = {1,1,8,8}> { z = Resize <mode = "linear"> (x, , , k)  y = Relu (z) }"""
    )
    frozen = reducelower.convert_version(source, 10, freeze_defaults=True)
    x = floats(1, 1, 4, 4)
    np.testing.assert_allclose(run(frozen, {"x": x})[0], run(source, {"x": x})[0], rtol=1e-5, atol=1e-6)
    assert verify(source, frozen).verdict == "different"
    del source.graph.input[1]
    assert verify(source, frozen).verdict == "equivalent"
