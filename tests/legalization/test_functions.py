"""Local functions: what a plan says of them, in place and expanded; `cases/functions.toml` has what they become."""

from __future__ import annotations

import pytest
from onnx import ModelProto, parser

import reducelower


def calling(opset: int, signature: str, body: str, function: str) -> ModelProto:
    return parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : {opset}, "local" : 1]> g {signature} {{ {body} }}
        <domain: "local", opset_import: ["" : {opset}]> F {function}"""
    )


def test_the_plan_tells_of_the_nodes_beside_functions_that_are_inlined() -> None:
    model = calling(
        18,
        "(float[2,3] x) => (float[2,1] z) <int64[1] a = {1}>",
        "y = local.F <along: ints = [0]> (x) n = Neg (y) [last] z = ReduceMax (n, a)",
        "<along> (x) => (y) { b = Constant <value_ints: ints = @along> () m = ReduceMin (x, b) y = Sub (x, m) }",
    )
    legal = reducelower.legalize(model, reducelower.Target(opset=13))
    assert not legal.model.functions
    assert [(site.graph, site.node, site.op_type, site.index) for site in legal.plan.sites] == [
        ("graph", "last", "ReduceMax", 2)
    ]
    assert [note for note in legal.plan.notes if "1 local function was copied in place of calls" in note]
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


@pytest.mark.parametrize(("domain", "name"), [("local", "F"), ("a/b", "F"), ("local", "F/G"), ("a/b/c", "/F/")])
def test_names_of_functions_may_have_slashes(domain: str, name: str) -> None:
    body = "<along> (x) => (y) { b = Constant <value_ints: ints = @along> () m = ReduceMin (x, b) y = Sub (x, m) }"
    model = calling(18, "(float[2,3] x) => (float[2,3] y)", "y = local.F <along: ints = [0]> (x)", body)
    model.functions[0].domain = model.opset_import[1].domain = model.graph.node[0].domain = domain
    model.functions[0].name = model.graph.node[0].op_type = name
    legal = reducelower.legalize(model, reducelower.Target(opset=13))
    assert [node.op_type for node in legal.model.graph.node] == ["ReduceMin", "Sub"]
    assert [note for note in legal.plan.notes if "1 local function was copied in place of calls" in note]
