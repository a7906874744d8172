"""What becomes of a node is the same whether it stands alone or among others of its kind, done many at once."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, checker, helper

import reducelower
from reducelower.api import legalize
from reducelower.legalization.templates import Template
from reducelower.options import Target

from .running import run

AXES = ("over", "across")
OPERATORS = ("ReduceL2", "ReduceLogSumExp", "ReduceMax")
COMPOSITE = frozenset(OPERATORS[:2])
CONVERSIONS = {
    "spec": (18, Target(18, COMPOSITE), "spec"),
    "stable": (18, Target(18, COMPOSITE), "stable"),
    "core": (18, Target(18, COMPOSITE), "core"),
    "up": (13, Target(18), "spec"),
    "down": (18, Target(13), "spec"),
    "down and expanded": (18, Target(11, COMPOSITE), "spec"),
}
# Lengths of the node's name, where it has one, of its input and of its output; one byte tells those below 128.
LENGTHS = [
    *((name, 5, 6) for name in (None, 0, 1, 9, 127, 128, 300)),
    *((7, name, 6) for name in (1, 127, 128, 300)),
    *((7, 5, name) for name in (2, 127, 128, 300)),
    *((None, 5, name) for name in (2, 127, 128, 300)),
]


def named(prefix: str, number: int, length: int) -> str:
    """A name of some length that is like no other."""
    return f"{prefix}{number:x}".ljust(length, "_") if length > 1 else chr(ord("!") + number % 90)


def nodes_of(opset: int) -> list[NodeProto]:
    """Nodes of three operators, several of each kind and layout, in turn."""
    nodes = []
    for place, (name, first, output) in enumerate(LENGTHS * 2):
        for op_type in OPERATORS:
            number = len(nodes)
            axes = (*AXES, None)[place % 3]
            inputs = [named("x", place, first), *([axes] if axes and opset >= 18 else [])]
            node = helper.make_node(op_type, inputs, [named("y", number, output)], keepdims=place % 2)
            if axes and opset < 18:
                node.attribute.append(helper.make_attribute("axes", [0 if axes == "over" else 1]))
            if name is not None:
                node.name = named("n", number, name) if name else ""
            nodes.append(node)
    return nodes


def model_of(nodes: list[NodeProto], opset: int, *, is_typed: bool) -> ModelProto:
    """The nodes, on data whose types are stated, or on what other nodes yield and nothing states the type of."""
    data = dict.fromkeys(node.input[0] for node in nodes if node.input[0] not in AXES)
    graph = helper.make_graph(
        nodes if is_typed else [*(helper.make_node("Relu", ["r"], [name]) for name in data), *nodes],
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", "M"]) for name in (data if is_typed else "r")],
        [helper.make_tensor_value_info(nodes[0].output[0], TensorProto.FLOAT, ["K"])],
        [helper.make_tensor(name, TensorProto.INT64, [1], [axis]) for axis, name in enumerate(AXES)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def without_data(model: ModelProto) -> list[NodeProto]:
    return [node for node in model.graph.node if node.op_type != "Relu"]


@pytest.mark.parametrize("is_typed", [True, False], ids=["typed", "untyped"])
@pytest.mark.parametrize("conversion", CONVERSIONS)
def test_nodes_among_others_become_what_they_become_alone(conversion: str, is_typed: bool) -> None:
    opset, target, rules = CONVERSIONS[conversion]
    nodes = nodes_of(opset)
    together = legalize(model_of(nodes, opset, is_typed=is_typed), target, rules=rules)
    checker.check_model(together.model, full_check=True)
    alone = [legalize(model_of([node], opset, is_typed=is_typed), target, rules=rules) for node in nodes]
    assert without_data(together.model) == [node for one in alone for node in without_data(one.model)]
    stated = {value.name: value for value in together.model.graph.value_info}
    for one in alone:
        for value in one.model.graph.value_info:
            assert stated.pop(value.name) == value
    assert not stated
    expected = [(site.op_type, site.rule, site.count) for one in alone for site in one.plan.sites]
    assert [(site.op_type, site.rule, site.count) for site in together.plan.sites] == expected
    firsts = [site.first for site in together.plan.sites]
    assert firsts == sorted(set(firsts))


@pytest.mark.parametrize(
    ("first", "output"),
    [("x" * 199 + "\x12", "y" * 17), ("x", "y" * 199 + "\x1a")],
    ids=["first input", "output"],
)
def test_names_that_look_like_fields(first: str, output: str) -> None:
    """A length of 200 takes two bytes; who takes one for all of it finds in these names what goes on as expected."""
    nodes = [helper.make_node("ReduceL1", ["x"], [name], name=f"{name:_^25}") for name in "ab"]
    nodes.append(helper.make_node("ReduceL1", [first], [output], name="n" * 25))
    model = model_of(nodes, 18, is_typed=False)
    expanded = legalize(model, Target(18, frozenset(["ReduceL1"]))).model
    assert [list(node.input[:1]) for node in without_data(expanded)[::2]] == [["x"], ["x"], [first]]
    assert [list(node.output) for node in without_data(expanded)[1::2]] == [["a"], ["b"], [output]]
    assert [node.name for node in without_data(expanded)[1::2]] == [node.name for node in nodes]


def test_a_constant_stays_while_replaced_nodes_read_it() -> None:
    """It is the axes of a node that comes to have an attribute instead, and the data of others."""
    nodes = [
        helper.make_node("ReduceMax", ["x", "over"], ["y"], keepdims=0),
        helper.make_node("ReduceL1", ["across"], ["z"]),
        helper.make_node("ReduceL1", ["over"], ["w"]),
    ]
    model = model_of(nodes, 18, is_typed=False)
    model.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.INT64, [1]) for name in "zw")
    converted = reducelower.convert_version(model, 13, without=["ReduceL1"])
    checker.check_model(converted, full_check=True)
    assert [result.tolist() for result in run(converted, {"r": np.float32([[1, 5], [3, 2]])})] == [[3, 5], [1], [0]]


@pytest.mark.parametrize("is_typed", [True, False], ids=["typed", "untyped"])
def test_a_name_that_is_set_to_nothing_is_none(is_typed: bool) -> None:
    """Some writers set it; protobuf tells that apart from a name that is not set."""
    nodes = [helper.make_node("ReduceL1", ["x"], [output]) for output in "abcd"]
    nodes[2].name = ""
    expanded = legalize(model_of(nodes, 18, is_typed=is_typed), Target(18, frozenset(["ReduceL1"]))).model
    assert [node.op_type for node in without_data(expanded)] == ["Abs", "ReduceSum"] * 4


@pytest.mark.parametrize("rules", ["spec", "stable"])
@pytest.mark.parametrize("outputs", [["a", "b", "", "c"], ["", "a", "b"]], ids=["among others", "first"])
def test_nodes_whose_output_nobody_wants(outputs: list[str], rules: str) -> None:
    nodes = [helper.make_node("ReduceL2", ["x"], [name], name=f"n{at}") for at, name in enumerate(outputs)]
    made = [
        without_data(legalize(model_of(some, 18, is_typed=False), Target(18, COMPOSITE), rules=rules).model)
        for some in (nodes, *([node] for node in nodes))
    ]
    assert made[0] == [node for alone in made[1:] for node in alone]


@pytest.mark.parametrize("length", [10, 200], ids=["short names", "long names"])
def test_what_is_written_for_names_of_some_lengths_is_made_once(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes with long names go another way, on which their like come one by one."""
    made: list[tuple[int, ...]] = []
    honest = Template._text_of

    def text_of(template: Template, lengths: tuple[int, ...]) -> tuple[bytes, list[int]]:
        made.append(lengths)
        return honest(template, lengths)

    monkeypatch.setattr(Template, "_text_of", text_of)
    nodes = [helper.make_node("ReduceL2", ["x"], [named("y", place, length)]) for place in range(9)]
    legalize(model_of(nodes, 18, is_typed=False), Target(18, COMPOSITE))
    assert len(made) == 1
