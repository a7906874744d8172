"""Slice below opset 10: steps and computed bounds."""

from __future__ import annotations

import numpy as np
from onnx import parser

import reducelower
from tests.adapters.models import floats, run


def test_axes_that_a_backward_slice_yields_are_what_runtimes_take() -> None:
    made = parser.parse_model(
        """
        <ir_version: 8, opset_import: ["": 18]> g (float[2, 3, 4] x) => (float[a, b] y)
        <int64[3] t = {1, 2, 0}, int64[1] s = {-9}, int64[1] e = {-99}, int64[1] z = {0}, int64[1] k = {-1}>
        { axes = Slice (t, s, e, z, k) y = ReduceSum <keepdims = 0> (x, axes) }
        """
    )
    data = floats(2, 3, 4)
    (result,) = run(reducelower.convert_version(made, 11), {"x": data})
    np.testing.assert_allclose(result, data.sum(axis=1), rtol=1e-6)
