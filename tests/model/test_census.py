"""The census of a model's bytes: its nodes apart from everything else, however these are laid out; what it states."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from onnx import GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, ValueInfoProto, helper

from reducelower.model.census import Census, Stated
from reducelower.model.nodelist import NodeList
from reducelower.model.wire import varint

NODES = [helper.make_node("Abs", ["x"], ["y"]), helper.make_node("Neg", ["y"], ["z"], name="n")]


def field(number: int, value: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(value)) + value


def graph(*nodes: int, name: str = "g", others_first: bool = False) -> bytes:
    """A graph with some of the nodes, before its other fields or behind them."""
    first = b"".join(field(1, NODES[number].SerializeToString()) for number in nodes)
    others = field(2, name.encode()) + field(
        11, helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]).SerializeToString()
    )
    return others + first if others_first else first + others


IMPORT = field(8, OperatorSetIdProto(version=18).SerializeToString())
UNKNOWN_GROUP = varint(999 << 3 | 3) + varint(1 << 3) + b"\x05" + varint(999 << 3 | 4)

LAYOUTS = {
    "as protobuf writes it": b"\x08\x08" + field(7, graph(0, 1)) + IMPORT,
    "imports before the graph": IMPORT + field(7, graph(0, 1)),
    "very many imports before the graph": IMPORT * 100 + field(7, graph(0, 1)),
    "other fields before the nodes": IMPORT + field(7, graph(0, 1, others_first=True)),
    "a node before and one behind other fields": field(7, graph(0) + field(1, NODES[1].SerializeToString())) + IMPORT,
    "no nodes": field(7, graph()) + IMPORT,
    "an empty graph": field(7, b"") + IMPORT,
    "no graph": IMPORT,
    "nothing": b"",
    "two graphs with a node each": field(7, graph(0)) + field(7, graph(1, name="h")) + IMPORT,
    "two graphs, nodes in the first": field(7, graph(0, 1)) + field(7, graph(name="h")) + IMPORT,
    "two graphs, nodes in the second": field(7, graph()) + field(7, graph(0, 1, name="h")) + IMPORT,
    "a field that onnx does not know": field(7, graph(0, 1) + field(500, b"?")) + field(600, b"!") + IMPORT,
    "a group before the graph": UNKNOWN_GROUP + field(7, graph(0, 1)) + IMPORT,
    "a long-winded length": varint(7 << 3 | 2) + bytes([len(graph(0, 1)) | 128, 128, 0]) + graph(0, 1) + IMPORT,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_nodes_and_the_rest(layout: str) -> None:
    serialized = LAYOUTS[layout]
    expected = ModelProto.FromString(serialized)
    nodes = [node.SerializeToString() for node in expected.graph.node]
    if expected.HasField("graph"):
        expected.graph.ClearField("node")
    taken = Census.of_model(serialized)
    rest = ModelProto.FromString(taken.without_nodes(serialized))
    assert list(taken.nodes) == list(taken.graph.node) == nodes
    assert rest == expected
    assert rest.HasField("graph") == expected.HasField("graph")


def test_the_graph_holds_nothing_but_nodes() -> None:
    taken = Census.of_model(LAYOUTS["a field that onnx does not know"])
    assert GraphProto.FromString(taken.graph.SerializeToString()) == GraphProto(node=NODES)


def _stating(*values: ValueInfoProto) -> bytes:
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])] * 3, "graph", [], [], value_info=values)
    return helper.make_model(graph).SerializeToString()


def test_what_value_info_states() -> None:
    float_value = helper.make_tensor_value_info("a", TensorProto.FLOAT, [2, None])
    integer = helper.make_tensor_value_info("b", TensorProto.INT64, None)
    stated = Stated(_stating(float_value, integer, float_value))
    assert list(stated.names) == [b"a", b"b", b"a"]
    assert stated.element_types == frozenset([TensorProto.FLOAT, TensorProto.INT64])
    stated.add(GraphProto(value_info=[helper.make_tensor_value_info("c", TensorProto.BOOL, [])]).SerializeToString())
    assert stated.element_types == frozenset([TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL])
    assert list(stated.names) == [b"a", b"b", b"a"]
    stated.add(GraphProto(value_info=[ValueInfoProto(name="d")]).SerializeToString())
    assert stated.element_types is None


@pytest.mark.parametrize(
    "other",
    [
        ValueInfoProto(name="b"),
        helper.make_tensor_value_info("b", TensorProto.UNDEFINED, [2]),
        helper.make_tensor_sequence_value_info("b", TensorProto.INT64, None),
        helper.make_value_info("b", helper.make_optional_type_proto(helper.make_tensor_type_proto(1, None))),
        helper.make_sparse_tensor_value_info("b", TensorProto.FLOAT, [2]),
    ],
)
def test_values_that_are_no_tensors_of_a_stated_type(other: ValueInfoProto) -> None:
    value = helper.make_tensor_value_info("a", TensorProto.FLOAT, [2])
    stated = Stated(_stating(value, other, value))
    assert list(stated.names) == [b"a", b"b", b"a"]
    assert stated.element_types is None


def test_a_model_that_states_nothing() -> None:
    assert Stated(_stating()).element_types == frozenset()
    assert Stated(b"").element_types == frozenset()
    assert list(Stated(b"").names) == []


def model(op_types: Sequence[str], domain: str = "") -> ModelProto:
    nodes = [helper.make_node(op_type, ["x"], ["y"], domain=domain) for op_type in op_types]
    return helper.make_model(helper.make_graph(nodes, "g", [], []))


@pytest.mark.parametrize("domain", ["", "com.microsoft"])
@pytest.mark.parametrize("names", [["Abs", "ReduceLogSumExp", "Abs", "Neg"], ["", "Abs", "", ""]])
def test_operators_are_told_apart_by_position(names: list[str], domain: str) -> None:
    taken = Census.of_model(model(names * 3, domain).SerializeToString())
    assert list(taken.operators) == list(dict.fromkeys(names))
    wanted = taken.positions({"Abs", "ReduceLogSumExp"}.__contains__)
    assert wanted == [at for at, name in enumerate(names * 3) if name in ("Abs", "ReduceLogSumExp")]


def test_nodes_without_an_operator_type() -> None:
    given = model(["Abs"] * 3)
    given.graph.node.append(NodeProto(input=["x"], output=["y"]))
    taken = Census.of_model(given.SerializeToString())
    assert not taken.is_even
    assert list(taken.positions(lambda op_type: False)) == [0, 1, 2, 3]


def test_models_of_exporters(models: Path) -> None:
    for path in sorted(models.glob("*.onnx")):
        serialized = path.read_bytes()
        expected = [node.op_type for node in ModelProto.FromString(serialized).graph.node]
        taken = Census.of_model(serialized)
        assert sorted(taken.operators) == sorted(set(expected))
        for name in taken.operators:
            assert taken.positions(name.__eq__) == [at for at, each in enumerate(expected) if each == name]


@pytest.mark.parametrize(
    ("held", "element_type"),
    [
        ({"value": helper.make_tensor("", TensorProto.INT8, [2], [1, 2])}, TensorProto.INT8),
        (
            {
                "sparse_value": helper.make_sparse_tensor(
                    helper.make_tensor("", TensorProto.DOUBLE, [1], [1.0]),
                    helper.make_tensor("", TensorProto.INT64, [1], [2]),
                    [4],
                )
            },
            TensorProto.DOUBLE,
        ),
        ({"value_int": 3}, TensorProto.INT64),
        ({"value_ints": [3]}, TensorProto.INT64),
        ({"value_float": 1.0}, TensorProto.FLOAT),
        ({"value_floats": [1.0]}, TensorProto.FLOAT),
        ({"value_string": "a"}, TensorProto.STRING),
        ({"value_strings": ["a"]}, TensorProto.STRING),
    ],
    ids=lambda held: next(iter(held)) if isinstance(held, dict) else "",
)
def test_the_element_types_of_constants_are_known_however_they_are_held(
    held: dict[str, Any], element_type: int
) -> None:
    shared = helper.make_node("Constant", [], ["f"], value=helper.make_tensor("", TensorProto.FLOAT16, [], [1.0]))
    nodes = [shared, *NODES, helper.make_node("Constant", [], ["c"], **held), shared]
    found = NodeList.of_holder(GraphProto(node=nodes)).types_of_constants()
    assert set(found) == {TensorProto.FLOAT16, element_type}
