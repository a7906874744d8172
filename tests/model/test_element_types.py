"""Element types told by operators' type variables are those that onnx's node tests state."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, parser

import reducelower
from reducelower.model.document import Document
from reducelower.scope.graph import GraphScope
from reducelower.scope.ground import Ground


def _told(graph: GraphProto, name: str, opset: int) -> int:
    """The element type that follows from those of the graph's inputs."""
    copy = GraphProto()
    copy.CopyFrom(graph)
    for value in copy.output:
        value.ClearField("type")
    model = ModelProto(ir_version=8, graph=copy)
    model.opset_import.add(version=opset)
    ground = Ground(Document(model), opset)
    return ground.resolver.ask(GraphScope(ground, copy, opset, "graph", key=()), "element_type", name) or 0


@pytest.mark.xdist_group("onnx's cases")
def test_they_are_those_of_the_node_tests_of_onnx() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        cases = collect_testcases(None)
    told = asked = 0
    for case in cases:
        model = case.model
        if model is None or any(entry.domain not in ("", "ai.onnx") for entry in model.opset_import):
            continue
        opset = model.opset_import[0].version
        for value in model.graph.output:
            if value.type.WhichOneof("value") == "tensor_type":
                found = _told(model.graph, value.name, opset)
                assert found in (0, value.type.tensor_type.elem_type), (case.name, value.name)
                asked += 1
                told += found > 0
    assert asked > 1000
    assert told > 0.9 * asked


def test_a_chain_is_followed_however_long_it_is() -> None:
    nodes = [NodeProto(op_type="Abs", input=[f"v{index}"], output=[f"v{index + 1}"]) for index in range(5_000)]
    graph = GraphProto(node=nodes)
    graph.input.add(name="v0").type.tensor_type.elem_type = TensorProto.DOUBLE
    assert _told(graph, "v5000", 13) == TensorProto.DOUBLE


def test_any_operand_tells_and_a_circle_tells_nothing() -> None:
    graph = parser.parse_graph("""g (float16[2] w) => (a, b) {
        odd = my.Mystery (w)  a = Add (odd, w)  b = Add (c, c)  c = Abs (b) }""")
    assert _told(graph, "a", 13) == TensorProto.FLOAT16
    assert _told(graph, "b", 13) == 0


def test_what_is_read_together_with_a_value_tells_its_type() -> None:
    graph = parser.parse_graph("g (float16[2] w) => (a) { odd = my.Mystery (w)  b = Neg (odd)  a = Add (b, w) }")
    assert _told(graph, "odd", 13) == TensorProto.FLOAT16


IN_BODIES = """<ir_version: 8, opset_import: ["": 17]>
g (float[2] x, float16 h, bool c, int64 n) => (y) {
  i = If (c) <then_branch = t () => (double[1] a) { a = Constant <value = double[1] {1}> () },
              else_branch = e () => (double[1] b) { b = Constant <value = double[1] {2}> () }>
  u = If (c) <then_branch = t () => (double[1] a) { a = Constant <value = double[1] {1}> () },
              else_branch = e () => (float[1] b) { b = Constant <value = float[1] {2}> () }>
  l, k = Loop (n, c, x) <body = b (int64 at, bool go, float[2] v) => (bool again, float[2] w, int64[1] s) {
    again = Identity (go) w = Abs (v) s = Constant <value_ints = [1]> () }>
  f, p = Scan <num_scan_inputs = 1, body = b (float16 v, float r) => (float16 w, int32 q) {
    w = Identity (v) q = Cast <to = 6> (r) }> (h, x)
  z = Add (i, i) y = Identity (z)
}"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [("z", "DOUBLE"), ("u", "UNDEFINED"), ("l", "FLOAT"), ("k", "INT64"), ("f", "FLOAT16"), ("p", "INT32")],
)
def test_bodies_state_the_types_of_what_their_node_yields(name: str, expected: str) -> None:
    assert _told(parser.parse_model(IN_BODIES).graph, name, 17) == TensorProto.DataType.Value(expected)


DIAMONDS = """<ir_version: 8, opset_import: ["": 18]>
g (float[2, 3] x) => (float[2, 1] y) <int64[1] v0 = {{1}}> {{ {nodes} y = ReduceMax (x, v{last}) }}"""


@pytest.mark.parametrize("count", [10, 3_000])
def test_constants_that_are_read_twice_at_every_step_are_computed_once_each(count: int) -> None:
    steps = [f"s{index} = Add (v{index}, v{index}) v{index + 1} = Sub (s{index}, v{index})" for index in range(count)]
    model = parser.parse_model(DIAMONDS.format(nodes=" ".join(steps), last=count))
    (node,) = reducelower.convert_version(model, 13).graph.node
    (axes,) = (attribute.ints for attribute in node.attribute if attribute.name == "axes")
    np.testing.assert_array_equal(axes, [1])
