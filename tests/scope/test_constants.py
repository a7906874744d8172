"""A graph knows its constants, whether initializers or Constant nodes hold them."""

from __future__ import annotations

import numpy as np
from onnx import parser

from reducelower.scope.graph import GraphScope
from tests.scope.test_ranks import scope_of


def test_constant_nodes_are_found_like_initializers() -> None:
    scope = scope_of(
        parser.parse_model("""<ir_version: 8, opset_import: ["": 17, "my": 1]> g (float[2] x) => (y)
        <int64[1] held = {3}> {
            made = Constant<value_ints = [3]>()  spelled = ai.onnx.Constant<value = int64[1] {3}>()
            foreign = my.Constant<value = int64[1] {3}>()  sum = Add(held, made)  y = Neg(x) }""")
    )
    for name in ("held", "made", "spelled", "sum"):
        constant = scope.constant(name)
        assert constant is not None
        np.testing.assert_array_equal(constant.array, [6 if name == "sum" else 3])
    assert [scope.constant(name) for name in ("foreign", "x", "y")] == [None] * 3
    written = {name: scope.written_as(name) for name in ("held", "made", "spelled", "foreign", "sum")}
    assert written == {
        "held": "initializer",
        "made": "constant",
        "spelled": "constant",
        "foreign": "dynamic",
        "sum": "dynamic",
    }


def test_a_graph_whose_types_were_asked_for_before_finds_the_values_around_it() -> None:
    scope = scope_of(
        parser.parse_model("""<ir_version: 8, opset_import: ["": 17]> g (bool c, float[2] x) => (y) {
            y = If (c) <
                then_branch = t () => (p) {
                    p = If (c) <then_branch = i () => (q) { q = Neg (x) }, else_branch = j () => (r) { r = Abs (x) }>
                },
                else_branch = e () => (s) { s = Exp (x) }> }""")
    )
    assert scope.rank("y") == 1
    inner = GraphScope(scope.ground, scope.edited.node[0].attribute[0].g, scope.opset, key=(0, 0))
    innermost = GraphScope(scope.ground, inner.edited.node[0].attribute[0].g, scope.opset, key=(0, 0, 0, 0))
    assert innermost.home("x") is scope
    assert innermost.constant("x") is None
