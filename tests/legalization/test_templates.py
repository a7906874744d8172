"""Nodes of one kind are treated alike, and nodes that differ are told apart."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, checker, helper, parser

import reducelower
from reducelower.legalization.templates import read_node
from tests.legalization.models import reduced, sample
from tests.legalization.running import run


def parse(text: str) -> ModelProto:
    model = parser.parse_model(text)
    checker.check_model(model, full_check=True)
    return model


@pytest.mark.parametrize("length", [1, 127, 128, 300, 20_000])
def test_names_of_any_length_are_read(length: int) -> None:
    name = "ä" + "n" * (length - 1)
    node = NodeProto(op_type="ReduceMax", name=name, input=[name, "", "axes"], output=[name + "y"], doc_string="d")
    read = read_node(node.SerializeToString())
    again = b"".join(
        [b"".join(b"\x0a" + value for value in read.inputs), b"".join(b"\x12" + value for value in read.outputs)]
    )
    assert NodeProto.FromString(again + b"\x1a" + read.name + read.rest) == node


def test_like_nodes_differ_in_nothing_but_names() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 18]>
        g (float[2, 3, 4] x, float[2, 3, 4] x2) => (float[2, 1, 4] y, float[2, 1, 4] y2, float[2, 3, 1] y3, float y4)
        <int64[1] one = {1}, int64[1] two = {2}>
        {
            y = ReduceL2 (x, one)
            y2 = ReduceL2 (x2, one)
            y3 = ReduceL2 (x, two)
            y4 = ReduceL2 <keepdims = 0> (x2)
        }
    """
    model = parse(text)
    for index, node in enumerate(model.graph.node):
        node.name = f"node {index}" if index != 1 else ""
    data = [sample(np.float32, seed=seed) for seed in (0, 1)]
    expected = [
        reduced("ReduceL2", data[0], [1], 1, None),
        reduced("ReduceL2", data[1], [1], 1, None),
        reduced("ReduceL2", data[0], [2], 1, None),
        reduced("ReduceL2", data[1], None, 0, None),
    ]
    for converted in (
        reducelower.convert_version(model, 11),
        reducelower.expand(model, rules="stable"),
        reducelower.expand(model, rules="spec"),
    ):
        checker.check_model(converted, full_check=True)
        results = run(converted, {"x": data[0], "x2": data[1]})
        for result, wanted in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, wanted, rtol=2e-6)
        names = [node.name for node in converted.graph.node if node.name]
        assert len(names) == len(set(names))
    assert [node.name for node in reducelower.convert_version(model, 11).graph.node] == [
        "node 0",
        "",
        "node 2",
        "node 3",
    ]


def test_like_nodes_of_different_element_types_get_their_own_replacements() -> None:
    graph = helper.make_graph(
        [
            helper.make_node("ReduceLogSumExp", [f"x{element}"], [f"y{element}"], keepdims=0)
            for element in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
        ],
        "g",
        [helper.make_tensor_value_info(f"x{element}", element, [3]) for element in (1, 11, 10)],
        [helper.make_tensor_value_info(f"y{element}", element, []) for element in (1, 11, 10)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    expanded = reducelower.expand(model, rules="stable")
    checker.check_model(expanded, full_check=True)
    feeds = {
        "x1": np.array([1000, 999, 0], np.float32),
        "x11": np.array([1000, 999, 0], np.float64),
        "x10": np.array([12, 11, 0], np.float16),
    }
    results = run(expanded, feeds)
    for result, values, tolerance in zip(results, feeds.values(), (1e-6, 1e-14, 2e-3), strict=True):
        exact = values.astype(np.longdouble)
        wanted = exact.max() + np.log(np.exp(exact - exact.max()).sum())
        np.testing.assert_allclose(result, float(wanted), rtol=tolerance)


def test_marks_stay_with_their_nodes() -> None:
    model = parse(
        """
        <ir_version: 10, opset_import: ["" : 18]>
        g (float[2, 3] x) => (float[2, 1] y, float[2, 1] z) <int64[1] one = {1}>
        { y = ReduceL1 (x, one)  z = ReduceL1 (x, one) }
        """
    )
    for node, text in zip(model.graph.node, ("first", "second"), strict=True):
        node.doc_string = text
        node.metadata_props.add(key="name", value=text)
    for converted in (reducelower.convert_version(model, 13), reducelower.expand(model)):
        marked = [node for node in converted.graph.node if node.doc_string]
        assert [node.doc_string for node in marked] == ["first", "second"]
        assert [node.metadata_props[0].value for node in marked] == ["first", "second"]
        assert [node.output[0] for node in marked] == ["y", "z"]


def test_nodes_without_names_are_replaced_alike() -> None:
    model = parser.parse_model(
        """
        <ir_version: 8, opset_import: ["" : 18]>
        g (float[2, 3] x) => (float[P, Q] y) { a = ReduceL1 (x)  b = ReduceL1 (a)  c = ReduceL1 (b)  y = ReduceL1 (c) }
        """
    )
    expanded = reducelower.expand(model)
    checker.check_model(expanded, full_check=True)
    assert [node.op_type for node in expanded.graph.node] == ["Abs", "ReduceSum"] * 4


@pytest.mark.parametrize("length", [1, 100, 127, 128, 200])
def test_nodes_are_patched_whatever_the_length_of_their_names(length: int) -> None:
    data = sample(np.float32)
    for source, target in ((13, 18), (18, 13)):
        axes = {"axes": [1]} if source == 13 else {}
        inputs = [] if source == 13 else ["a" * length]
        nodes = [
            helper.make_node("ReduceMax", [x, *inputs], [f"{x}y"], name=name, keepdims=0, **axes)
            for x, name in (("x" * length, ""), ("x", "n" * length), ("x", ""), ("x" * length, "m"))
        ]
        for number, node in enumerate(nodes):
            node.output[0] = f"{'y' * length}{number}"
        graph = helper.make_graph(
            nodes,
            "g",
            [
                helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3, 4])
                for name in dict.fromkeys(["x", "x" * length])
            ],
            [helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, [2, 4]) for node in nodes],
            [helper.make_tensor(name, TensorProto.INT64, [1], [1]) for name in inputs],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", source)], ir_version=8)
        converted = reducelower.convert_version(model, target)
        checker.check_model(converted, full_check=True)
        assert [node.name for node in converted.graph.node] == [node.name for node in nodes]
        for result in run(converted, {value.name: data for value in graph.input}):
            np.testing.assert_array_equal(result, data.max(1))


def test_a_node_whose_data_are_its_axes_is_no_pattern_for_others() -> None:
    model = parse(
        """
        <ir_version: 8, opset_import: ["" : 18]>
        g (int64[1] x) => (int64[1] y, int64[1] z) <int64[1] axes = {0}>
        { y = ReduceL1 (axes, axes)  z = ReduceL1 (x, axes) }
        """
    )
    expanded = reducelower.expand(model)
    checker.check_model(expanded, full_check=True)
    y, z = run(expanded, {"x": np.array([-5])})
    assert (y.tolist(), z.tolist()) == ([0], [5])


def relu_and_reduce(operator: str, kinds: tuple[str, str]) -> ModelProto:
    """Two like nodes, whose data is of ranks 2 and 3, of some element types, which nothing states."""
    first, second = kinds
    return parse(
        f"""
        <ir_version: 8, opset_import: ["" : 13]>
        g ({first}[2, 3] x, {second}[5, 6, 7] y) => ({first}[P] p, {second}[Q, R] q)
        {{
            a = Relu (x)
            b = Relu (y)
            p = {operator} <axes = [-1], keepdims = 0> (a)
            q = {operator} <axes = [-1], keepdims = 0> (b)
        }}
        """
    )


@pytest.mark.parametrize("ranks", [{}, {"a": 2}, {"b": 3}, {"a": 2, "b": 3}])
def test_a_rank_that_is_declared_is_that_of_one_value(ranks: dict[str, int]) -> None:
    data = {"x": sample(np.float32, (2, 3)), "y": np.arange(210, dtype=np.float32).reshape(5, 6, 7)}
    converted = reducelower.convert_version(relu_and_reduce("ReduceMax", ("float", "float")), 10, ranks=ranks)
    checker.check_model(converted, full_check=True)
    for result, values in zip(run(converted, data), data.values(), strict=True):
        np.testing.assert_array_equal(result, np.maximum(values, 0).max(-1))


@pytest.mark.parametrize("element_types", [{}, {"a": "float"}, {"b": "double"}])
def test_a_type_that_is_declared_is_that_of_one_value(element_types: dict[str, str]) -> None:
    data = {"x": sample(np.float32, (2, 3)), "y": np.arange(210, dtype=np.float64).reshape(5, 6, 7)}
    model = relu_and_reduce("ReduceL2", ("float", "double"))
    expanded = reducelower.expand(model, rules="stable", element_types=element_types)
    checker.check_model(expanded, full_check=True)
    for result, values in zip(run(expanded, data), data.values(), strict=True):
        np.testing.assert_allclose(result, np.sqrt((np.maximum(values, 0).astype(np.float64) ** 2).sum(-1)), rtol=1e-6)


def test_a_rank_that_is_declared_is_no_reason_to_believe_it_of_others() -> None:
    model = parser.parse_model(
        """
        <ir_version: 8, opset_import: ["" : 13]>
        g (float x, float y) => (float[P] p, float[Q] q)
        { p = ReduceMax <axes = [-1]> (x)  q = ReduceMax <axes = [-1]> (y) }
        """
    )
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.ClearField("shape")
    with pytest.raises(reducelower.ConversionError, match="the rank of 'y' is not known"):
        reducelower.convert_version(model, 10, ranks={"x": 2})
