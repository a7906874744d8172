"""Local functions: what a plan says of them; `cases/functions.toml` has what they become."""

from __future__ import annotations

from onnx import ModelProto, parser

import reducelower


def calling(opset: int, signature: str, body: str, function: str) -> ModelProto:
    return parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : {opset}, "local" : 1]> g {signature} {{ {body} }}
        <domain: "local", opset_import: ["" : {opset}]> F {function}"""
    )


def test_the_plan_tells_of_the_nodes_of_inlined_functions() -> None:
    model = calling(
        18,
        "(float[2,3] x) => (float[2,1] z) <int64[1] a = {1}>",
        "y = local.F <along: ints = [0]> (x) n = Neg (y) [last] z = ReduceMax (n, a)",
        "<along> (x) => (y) { b = Constant <value_ints: ints = @along> () m = ReduceMin (x, b) y = Sub (x, m) }",
    )
    legal = reducelower.legalize(model, reducelower.Target(opset=13))
    assert not legal.model.functions
    assert [(site.graph, site.node, site.op_type, site.index) for site in legal.plan.sites] == [
        ("graph", "ReduceMin#1", "ReduceMin", 1),
        ("graph", "last", "ReduceMax", 4),
    ]
    assert "1 local function was copied in place of calls." in legal.plan.notes
    assert reducelower.verify(model, legal.model, plan=legal.plan).equivalent


def test_an_in_place_conversion_copies_functions_as_well() -> None:
    model = calling(
        18,
        "(float[2,3] x) => (float[a,b] y, float[c,d] z) <int64[1] first = {0}, int64[1] last = {-1}>",
        "y = local.F (x, first)  z = local.F (x, last)",
        "(a, axes) => (b) { b = ReduceMax (a, axes) }",
    )
    assert reducelower.check(model, 13).refusals == ()
    expected = reducelower.convert_version(model, 13)
    reducelower.convert_version(model, 13, in_place=True)
    assert model == expected
