"""The smallest part of a model that fails: what is left is exactly what the fault needs."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, parser
from onnx.reference import ReferenceEvaluator

from reducelower.conformance.bisection import Part, single_nodes, smallest_part
from reducelower.conformance.case import Case
from reducelower.conformance.judging import Verdict

FORMS = ("Neg", "Abs", "Tanh", "Sigmoid", "HardSigmoid", "Sin", "Cos", "Atan", "Softplus", "Softsign", "Erf", "Ceil")


def case(text: str, **feeds: Any) -> Case:
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}')
    expected = ReferenceEvaluator(model).run(None, feeds)
    return Case("m", "whole model", 17, model.SerializeToString(), feeds, tuple(map(np.asarray, expected)))


def inside(whole: Case) -> dict[str, Any]:
    shown = ModelProto.FromString(whole.model)
    names = [name for node in shown.graph.node for name in node.output]
    shown.graph.ClearField("output")
    for name in names:
        shown.graph.output.add(name=name)
    return dict(zip(names, map(np.asarray, ReferenceEvaluator(shown).run(None, dict(whole.inputs))), strict=True))


def operators(model: bytes) -> list[str]:
    return [node.op_type for node in ModelProto.FromString(model).graph.node]


def failing_with(*needed: str) -> Any:
    """A runtime that fails where all of these operators are in a model, each behind the one before."""

    def run(part: Case) -> Verdict:
        graph = ModelProto.FromString(part.model).graph
        behind: dict[str, int] = {}
        for node in graph.node:
            depth = max((behind.get(name, 0) for name in node.input), default=0)
            depth += depth < len(needed) and node.op_type == needed[depth]
            behind.update(dict.fromkeys(node.output, depth))
        is_right = max(behind.values(), default=0) < len(needed)
        return Verdict("right") if is_right else Verdict("refused", "error", "cannot fuse")

    return run


@pytest.mark.parametrize("seed", range(20))
def test_what_is_left_is_what_the_fault_needs(seed: int) -> None:
    drawn = random.Random(seed)
    names = drawn.sample(FORMS, len(FORMS))
    nodes = [f"v0 = {names[0]} (x)"]
    for at, name in enumerate(names[1:], 1):
        # Two branches that are added from time to time: a part is no stretch of nodes then.
        nodes.append(f"u{at} = {name} (v{drawn.randrange(at)}) v{at} = Add (u{at}, v{at - 1})")
    whole = case(
        f"g (float[2,3] x) => (float[2,3] y) {{ {' '.join(nodes)} y = Identity (v{len(names) - 1}) }}",
        x=np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3),
    )
    single = names[drawn.randrange(len(names))]
    found = smallest_part(whole, inside(whole), failing_with(single))
    assert found is not None and found.names == single
    assert operators(found.case.model) == [single]
    pair = failing_with("Add", single)
    if pair(whole).word == "refused":
        found = smallest_part(whole, inside(whole), pair)
        assert found is not None and found.names == f"Add > {single}"


def test_a_part_is_fed_and_gives_what_the_whole_model_computes_there() -> None:
    whole = case(
        "g (float[3] x) => (float[3] y) <float[3] w = {1, 2, 3}> { a = Exp (x) b = Mul (a, w) y = Neg (b) }",
        x=np.array([0.5, -1, 2], np.float32),
    )
    found = smallest_part(whole, inside(whole), failing_with("Mul"))
    assert found is not None
    np.testing.assert_allclose(found.case.inputs["a"], np.exp([0.5, -1, 2]), rtol=1e-6)
    np.testing.assert_allclose(found.case.expected[0], np.exp([0.5, -1, 2]) * [1, 2, 3], rtol=1e-6)
    weights = ModelProto.FromString(found.case.model).graph.initializer
    assert [tensor.name for tensor in weights] == ["w"]  # the form of the node stays: its weight is not fed


def test_a_constant_goes_with_the_node_that_reads_it() -> None:
    whole = case(
        "g (float[2,3] x) => (float[3,2] y)"
        "{ e = Exp (x) shape = Constant <value_ints = [3, 2]> () y = Reshape (e, shape) }",
        x=np.zeros((2, 3), np.float32),
    )
    found = smallest_part(whole, inside(whole), failing_with("Reshape"))
    assert found is not None
    assert operators(found.case.model) == ["Constant", "Reshape"]
    assert found.names == "Reshape"


def test_what_fails_nowhere_has_no_part() -> None:
    whole = case("g (float[3] x) => (float[3] y) { y = Neg (x) }", x=np.ones(3, np.float32))
    assert smallest_part(whole, inside(whole), failing_with("Exp")) is None


def test_of_nodes_that_are_written_alike_a_few_are_tried() -> None:
    alike = " ".join(f"e{at} = Elu (e{at - 1})" for at in range(1, 9))
    whole = case(
        f"g (float[3] x) => (float[3] y) {{ e0 = Elu (x) {alike} c = Elu <alpha = 2.0> (e8) y = Neg (c) }}",
        x=np.ones(3, np.float32),
    )
    found = list(single_nodes(whole, "Elu", inside(whole), failing_with("Elu")))
    assert [operators(part.case.model) for part in found] == [["Elu"]] * 4
    assert [len(part.nodes[0].attribute) for part in found] == [0, 0, 0, 1]


def test_a_part_brings_the_functions_and_sparse_weights_that_it_needs() -> None:
    text = (
        '<ir_version: 8, opset_import: ["": 17, "own": 1]> g (float[2,3] x) => (float[2,3] y)'
        "{ a = Neg (x) b = own.Twice (a) c = Add (b, w) y = Tanh (c) }"
        '<domain: "own", opset_import: ["": 17]> Twice (value) => (sum) { sum = Add (value, value) }'
    )
    model = parser.parse_model(text)
    places = helper.make_tensor("", TensorProto.INT64, [2], [1, 5])
    weights = helper.make_sparse_tensor(helper.make_tensor("w", TensorProto.FLOAT, [2], [5.0, 7.0]), places, [2, 3])
    model.graph.sparse_initializer.append(weights)
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    dense = np.array([[0, 5, 0], [0, 0, 7]], np.float32)
    values = {"a": -x, "b": -2 * x, "c": -2 * x + dense, "y": np.tanh(-2 * x + dense)}
    whole = Case("m", "whole model", 17, model.SerializeToString(), {"x": x}, (values["y"],))

    def run(part: Case) -> Verdict:
        """Whether onnxruntime, which refuses a model that lacks something, gives what the part is to give."""
        session = onnxruntime.InferenceSession(part.model, providers=["CPUExecutionProvider"])
        given = session.run(None, dict(part.inputs))
        for got, wanted in zip(given, part.expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-6)
        return failing_with("Twice", "Add")(part)

    found = smallest_part(whole, values, run)
    assert found is not None
    assert found.names == "Twice > Add"
    assert [function.name for function in ModelProto.FromString(found.case.model).functions] == ["Twice"]


def test_of_many_nodes_the_first_and_the_last_are_named() -> None:
    names = ("Neg", "Abs", "Tanh", "Sigmoid", "Sin", "Cos", "Atan", "Ceil")
    nodes = tuple(helper.make_node(name, ["x"], ["y"]) for name in names)
    part = Part(Case("m", "Ceil", 17, b"", {}, ()), Verdict("refused"), nodes)
    assert part.names == "Neg > Abs > Tanh > 2 more > Cos > Atan > Ceil"
