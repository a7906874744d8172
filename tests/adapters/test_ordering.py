"""Clip, Max, Min, Relu, Equal, TopK and ArgMax of element types and bounds that came late."""

from __future__ import annotations

import numpy as np
import onnx.parser

from tests.adapters.models import assert_same, converted, floats, one, run


def test_a_count_that_a_call_of_a_function_states_becomes_a_list_of_one() -> None:
    model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 9, "local" : 1]>
    g (float[4] x) => (float[2] y, int64[2] i) { y, i = local.f <count = 2> (x) }
    <domain: "local", opset_import: ["" : 9]>
    f <count> (x) => (y, i) { y, i = TopK <k: int = @count> (x) }
    """)
    values, places = run(converted(model, 13), {"x": np.array([1, 4, 2, 3], np.float32)})
    np.testing.assert_array_equal(values, [4, 3])
    np.testing.assert_array_equal(places, [1, 3])


def test_the_largest_none_are_empty_below_opset_10() -> None:
    k = {"k": np.array([0])}
    for feeds, constants in (({"x": floats(2, 3)}, k), ({"x": floats(2, 0)} | k, {})):
        made = one("TopK", feeds, 11, outputs=["y", "i"], constants=constants, axis=1)
        assert_same(made, feeds, 9, np.zeros((2, 0), np.float32), np.zeros((2, 0), np.int64))
