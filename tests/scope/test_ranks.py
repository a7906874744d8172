"""Ranks are followed back through operators, are what a run shows, and take no inference of the whole model."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, checker, parser

import reducelower
from reducelower.model import protected
from reducelower.model.document import Document
from reducelower.scope.graph import GraphScope
from reducelower.scope.ground import Ground
from reducelower.types import Resolver
from reducelower.types.node_inference import NodeInference
from tests.models import model, yields
from tests.watching import calls_of
from tools.node_cases import Case, cases

TABLE = tomllib.loads(Path(__file__).with_name("ranks.toml").read_text("utf-8"))


def scope_of(given: ModelProto) -> GraphScope:
    opset = given.opset_import[0].version
    ground = Ground(Document(given), opset)
    return GraphScope(ground, given.graph, opset, "graph", key=())


def rank_of(name: str, scope: GraphScope) -> int | None:
    return scope.ground.resolver.ask(scope, "rank", name)


def without_stated(given: ModelProto) -> ModelProto:
    """A copy that states nothing of what nodes yield."""
    copy = ModelProto.FromString(given.SerializeToString())
    del copy.graph.value_info[:]
    for value in copy.graph.output:
        value.ClearField("type")
    return copy


def told(case: Case) -> list[tuple[str, int, int | None]]:
    """Of each output its name, the rank it has, and the rank that operators tell."""
    bare = without_stated(case.model)
    scope = scope_of(bare)
    expected = zip(bare.graph.output, case.outputs, strict=True)
    return [(value.name, np.ndim(given), rank_of(value.name, scope)) for value, given in expected]


@pytest.mark.xdist_group("onnx's cases")
def test_ranks_are_those_of_onnx_s_own_cases() -> None:
    known = 0
    for case in cases():
        if not all(isinstance(value, np.ndarray | np.generic) for value in case.outputs):
            continue
        for name, rank, found in told(case):
            assert found in (None, rank), f"{case.name}: {name}"
            known += found is not None
    assert known > 1500


@pytest.mark.parametrize("target", [13, 17])
def test_a_traced_model_is_not_inferred_for_a_rank(target: int) -> None:
    given = parser.parse_model(TABLE["traced"])
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=(2, 3, 32)).astype(np.float32), rng.normal(size=(32, 32)).astype(np.float32)
    scores = np.exp((x @ w + x).reshape(2, 3, 4, 8).transpose(0, 2, 1, 3).astype(np.float64))

    with calls_of(protected.infer_shapes) as calls:
        converted = reducelower.convert_version(given, target)
    inferred = [len(call["model"].graph.node) for _, call in calls]
    assert max(inferred, default=0) < len(given.graph.node) // 2
    checker.check_model(converted, full_check=True)
    assert [node.op_type for node in converted.graph.node].count("Softmax") == 1
    assert "Flatten" not in {node.op_type for node in converted.graph.node}
    found = yields(converted, {"x": x, "w": w})[0]
    np.testing.assert_allclose(found, scores / scores.sum(-1, keepdims=True), rtol=1e-4)


@pytest.mark.parametrize("name", TABLE["shapes"])
def test_a_rank_follows_from_how_long_a_shape_is(name: str) -> None:
    made, *rank = TABLE["shapes"][name]
    given = model(
        f"""(float[a,b,c] x) => (float[p] y)
        <int64[2,2] pairs = {{2, 1, 3, 1}}, int64[2] row = {{1, 1}}, int64[1] minus = {{-1}}, int64[1] zero = {{0}},
         int64[1] far = {{9223372036854775807}}, int64[1] near = {{-9}}, int64[1] one = {{1}}> {{
        {made}  y = Reshape(x, s) }}""",
        17,
    )
    assert rank_of("y", scope_of(without_stated(given))) == (rank[0] if rank else None)


def test_how_many_sizes_are_listed_says_nothing_of_what_they_are_taken_from() -> None:
    scope = scope_of(without_stated(parser.parse_model(TABLE["traced"])))
    with calls_of(Resolver.ask, NodeInference.infer) as calls:
        assert rank_of("v", scope) == 4
    assert {"x", "h", "h3"}.isdisjoint(call.get("name") for _, call in calls)
    assert "told" not in {function for function, _ in calls}, "onnx's inference takes several times as long"


def test_a_constant_tells_the_element_type_of_what_it_is_computed_with() -> None:
    given = model("(float[2] x) => (y) <float[2] bias = {1, 2}> { h = Exp (x)  y = Add (h, bias) }", 13, 7)
    scope = scope_of(without_stated(given))
    with calls_of(Resolver.ask) as calls:
        assert scope.ground.resolver.ask(scope, "element_type", "y") == TensorProto.FLOAT
    assert {call["name"] for _, call in calls} == {"y"}


def test_what_is_no_constant_is_asked_for_no_element_type() -> None:
    scope = scope_of(parser.parse_model(TABLE["traced"]))
    with calls_of(Resolver.ask) as calls:
        assert scope.constant("b1") is None
    assert "element_type" not in {call["question"] for _, call in calls}


def test_a_value_may_be_made_of_thousands() -> None:
    chain = " ".join(f"v{at + 1} = Relu (v{at})" for at in range(5000))
    given = model(f"(float[2,n,3] v0) => (float[] v5000) {{ {chain} }}", 13)
    assert rank_of("v5000", scope_of(given)) == 3


def test_a_value_made_of_itself_has_none() -> None:
    given = model("(float[2] x) => (float[n] y) { y = Relu (x)  a = Add (x, b)  b = Neg (a) }", 13, 7)
    scope = scope_of(given)
    assert [rank_of(name, scope) for name in ("a", "b", "y")] == [None, None, 1]


@pytest.mark.parametrize(
    ("stated", "nodes"),
    [
        ("float[2,3] z", "z = Abs (x)  y = ReduceMax <axes = [-1]> (z)"),
        ("float[6] a, float[1] c", "a = Relu (x)  c = Neg (a)  d = Abs (c)  y = ReduceMax <axes = [-1]> (d)"),
    ],
)
def test_a_rank_that_nodes_compute_counts_whatever_the_model_states(stated: str, nodes: str) -> None:
    """The last of three axes is 2; by the stated ranks it were 1 or 0."""
    wrong = parser.parse_model(
        f'<ir_version: 7, opset_import: ["": 12]> g (float[2,3,4] x) => (float[2,3,1] y) <{stated}> {{ {nodes} }}'
    )
    *_, reduced = reducelower.convert_version(wrong, 9).graph.node
    assert [list(attribute.ints) for attribute in reduced.attribute if attribute.name == "axes"] == [[2]]
