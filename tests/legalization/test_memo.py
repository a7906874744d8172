"""What became of one node is done to another exactly where every question about it has the same answer."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, checker, helper

import reducelower
from reducelower import Target
from reducelower.legalization import run
from reducelower.legalization.memo import read_node
from reducelower.legalization.node_rewriter import NodeRewriter
from reducelower.model.document import Document
from reducelower.scope.blanks import ALL_OPERANDS
from reducelower.scope.graph import GraphScope
from reducelower.scope.ground import Ground
from reducelower.scope.node import NodeScope
from reducelower.scope.scope import Asking
from reducelower.types import Inference
from tests.models import model, yields
from tests.watching import calls_of
from tools.memo_graphs import converted, differing


def test_random_graphs_come_out_the_same_without_it() -> None:
    assert not list(differing(7, 8))


def test_a_type_without_a_shape_does_not_set_off_inference() -> None:
    # Else what is known of types would depend on which node was worked out and which repeated.
    given = model("(float[2,3] x) => (float[] y) <float[] a> { a = Neg (x)  y = ReduceMean <axes = [1]> (a) }", 13)
    with calls_of(Inference.types) as calls:
        newer = ModelProto.FromString(reducelower.convert_version(given.SerializeToString(), 18))
    assert not calls
    assert [len(node.input) for node in newer.graph.node] == [1, 2]


def test_a_graph_inside_what_is_written_is_no_reason_for_doubt() -> None:
    # It reads values from around it; looking through the whole model for many of them takes onnx minutes.
    given = model("(float[a,b,c] x, int64[k] axes) => (float[d,e,f] y) { y = ReduceMax (x, axes) }")
    with calls_of(run.new_objection) as calls:
        older = ModelProto.FromString(reducelower.convert_version(given.SerializeToString(), 13))
    assert not calls
    assert "If" in [node.op_type for node in older.graph.node]


SPELLED = {"value": "{} = Constant <value = int64[1] {{1}}> ()", "value_ints": "{} = Constant <value_ints = [1]> ()"}


def _reductions(spelling: str, count: int = 12) -> ModelProto:
    """A chain of like reductions whose axes are spelled in one way, each with metadata of its own."""
    names = ["axes" if spelling == "shared" else f"axes_{at}" for at in range(count)]
    read = ["x", *(f"y{at}" for at in range(count))]
    body = " ".join(
        f"{SPELLED.get(spelling, '').format(name)} [node_{at}] y{at} = ReduceMax ({read[at]}, {name})"
        for at, name in enumerate(names)
    )
    held = {} if spelling in SPELLED else dict.fromkeys(names, np.array([1]))
    made = model(f"(float[2,3] x) => (float[2,1] y{count - 1}) {{ {body} }}", **held)
    for number, node in enumerate(node for node in made.graph.node if node.op_type == "ReduceMax"):
        node.doc_string = f"doc {number}"
        node.metadata_props.add(key="namespace", value=f"layer {number}")
    return made


@pytest.mark.parametrize("spelling", ["own", "shared", "value", "value_ints"])
def test_constants_answer_by_value_however_they_are_spelled(spelling: str) -> None:
    with calls_of(NodeRewriter.legalize) as calls:
        older = reducelower.convert_version(_reductions(spelling), 13)
    assert [call["node"].op_type for _, call in calls].count("ReduceMax") == 1
    reductions = [node for node in older.graph.node if node.op_type == "ReduceMax"]
    assert all(list(node.input) == [f"y{number - 1}" if number else "x"] for number, node in enumerate(reductions))
    assert not older.graph.initializer
    assert not [node for node in older.graph.node if node.op_type == "Constant"]


def test_every_node_keeps_its_own_name_doc_string_and_metadata() -> None:
    expanded = reducelower.expand(reducelower.convert_version(_reductions("own"), 17))
    for older in (expanded, reducelower.convert_version(_reductions("own"), 13)):
        nodes = [node for node in older.graph.node if node.op_type == "ReduceMax"]
        assert [node.name for node in nodes] == [f"node_{number}" for number in range(12)]
        assert [node.doc_string for node in nodes] == [f"doc {number}" for number in range(12)]
        assert [node.metadata_props[0].value for node in nodes] == [f"layer {number}" for number in range(12)]


def test_names_that_stand_in_the_model_are_not_given_again() -> None:
    given = model(
        """(float[2,3] x) => (float[2,1] y, float[2,1] z, float[2,3] w) <int64[1] a = {1}, int64[1] b = {1}> {
        y = ReduceSumSquare (x, a)  z = ReduceSumSquare (x, b)  w = Relu (x) }"""
    )
    free = {name for node in reducelower.expand(given).graph.node for name in node.output}
    taken = sorted(free - {"y", "z", "w"})
    given.graph.node[2].output[0] = given.graph.output[2].name = taken[0]
    expanded = reducelower.expand(given)
    checker.check_model(expanded, full_check=True)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for found, expected in zip(yields(expanded, {"x": x}), [(x * x).sum(1, keepdims=True)] * 2 + [x], strict=True):
        np.testing.assert_array_equal(found, expected)


# What rules are told is written down

_OF_ALL = {"known": ("⟦1⟧",), "never_zero": ()}
"""Questions about all operands together, with their arguments."""

_QUESTIONS = sorted(get_args(Asking))


def _node_scope() -> tuple[NodeProto, NodeScope]:
    given = model("(float[2,3] x) => (float[2,1] y) <int64[1] a = {1}> { y = ReduceMax (x, a) }")
    ground = Ground(Document(given), 13)
    read = read_node(given.graph.node[0].SerializeToString())
    return read.in_blanks(), NodeScope(GraphScope(ground, given.graph, 18, "graph", key=()), read.operands())


@pytest.mark.parametrize("question", _QUESTIONS)
def test_every_question_about_an_operand_is_written_down(question: str) -> None:
    node, scope = _node_scope()
    getattr(scope, question)(node.input[1])
    assert [asked.value for asked in scope.trail] == [1]


@pytest.mark.parametrize("question", _OF_ALL)
def test_every_question_about_all_operands_is_written_down(question: str) -> None:
    _, scope = _node_scope()
    getattr(scope, question)(*_OF_ALL[question])
    assert [asked.value for asked in scope.trail] == [ALL_OPERANDS]


def test_a_rule_sees_no_name_of_the_model() -> None:
    node, _ = _node_scope()
    assert not {"x", "a", "y"} & {*node.input, *node.output, node.name}


def test_what_a_rule_asks_of_another_value_holds_for_its_node_only() -> None:
    _, scope = _node_scope()
    assert scope.is_repeatable
    scope.rank("x")
    assert not scope.is_repeatable


def test_refusals_name_each_node_and_its_values() -> None:
    data = model(
        """(float[2,3] x, int64[1] a, int64[1] b) => (float[k] y, float[l] z) {
        y = ReduceLogSumExp <keepdims = 0> (x, a)  z = ReduceLogSumExp <keepdims = 0> (x, b) }"""
    ).SerializeToString()
    for target in (Target(7), Target(5)):
        said = converted(data, target, memo=True)
        assert said == converted(data, target, memo=False)
        if isinstance(said, str):
            assert "⟦" not in said


@pytest.mark.parametrize("names", ["/m OP /m/OP m/OP /OPed", "/m /m/OP /m/OP/OP OP/OP /OP/OP OP"])
@pytest.mark.parametrize(("node", "target"), [("Mish(x)", 17), ("LayerNormalization(x, s)", 15)])
def test_names_that_end_like_what_is_written(node: str, target: int, names: str) -> None:
    """Exporters name nodes after the operator, behind the module it stands in."""
    operator, _, operands = node.partition("(")
    given = model("(float[2,3] x, float[3] s) => () { }")
    for number, name in enumerate(names.replace("OP", operator).split() * 2):
        made = given.graph.node.add(op_type=operator, name=name, output=[f"y{number}"])
        made.input.extend(operands[:-1].split(", "))
        given.graph.output.append(helper.make_tensor_value_info(f"y{number}", TensorProto.FLOAT, [2, 3]))
    after = {memo: converted(given.SerializeToString(), Target(target), memo=memo) for memo in (True, False)}
    assert after[True] == after[False]
    assert isinstance(after[True], bytes)
    older = ModelProto.FromString(after[True])
    assert len(older.graph.node) >= 3 * len(given.graph.node)
    checker.check_model(older, full_check=True)
