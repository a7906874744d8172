"""What `expand` makes of a normalization, `raise` puts together again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, checker, helper, numpy_helper, parser

import reducelower
from reducelower.recompose import raise_with_plan

CASES = {
    "LayerNormalization": (17, "(x, s, b)", "[2, 3, 8]", "[8]"),
    "LayerNormalization without bias": (17, "<axis = -1, epsilon = 0.001> (x, s)", "[2, 3, 8]", "[8]"),
    "LayerNormalization of two axes": (21, "<axis = 1, epsilon = 1e-12> (x, s, b)", "[2, 3, 8]", "[3, 8]"),
    "RMSNormalization": (23, "<epsilon = 0.000001> (x, s)", "[2, 3, 8]", "[8]"),
    "GroupNormalization": (21, "<num_groups = 2> (x, s, b)", "[2, 4, 5, 3]", "[4]"),
    "InstanceNormalization": (17, "<epsilon = 0.1> (x, s, b)", "[2, 4, 5, 3]", "[4]"),
    "InstanceNormalization of sequences": (22, "(x, s, b)", "[2, 4, 5]", "[4]"),
    "MeanVarianceNormalization": (13, "(x)", "[2, 4, 5, 3]", ""),
    "MeanVarianceNormalization over two axes": (13, "<axes = [0, 2]> (x)", "[2, 4, 8]", ""),
    "LpNormalization": (18, "<axis = 1> (x)", "[2, 4, 8]", ""),
    "LpNormalization of magnitudes": (18, "<p = 1> (x)", "[2, 4, 8]", ""),
    "Softmax": (13, "(x)", "[2, 4, 8]", ""),
    "LogSoftmax": (18, "<axis = 1> (x)", "[2, 4, 8]", ""),
}
WAYS = [("float", "spec", ()), ("float", "stable", ()), ("float16", "spec", ()), ("float16", "stable", ())]
WAYS += [("float16", "stable", ("float",)), ("double", "stable", ())]


def model(name: str, kind: str) -> ModelProto:
    opset, call, shape, vector = CASES[name]
    inputs = [f"{kind}{shape} x"]
    inputs += [f"{kind}{vector} {operand}" for operand in ("s", "b") if f", {operand}" in call]
    graph = f"g ({', '.join(inputs)}) => ({kind}{shape} y) {{ y = {name.split()[0]} {call} }}"
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> {graph}')


def meaning(given: ModelProto) -> tuple[str, list[str], dict[str, object]]:
    """The one node of a model: operator, operands, attributes with their defaults; axes from the front."""
    (node,) = given.graph.node
    schema = reducelower.model.schemas.schema(node.op_type, given.opset_import[0].version)
    said = {
        name: helper.get_attribute_value(attribute.default_value)
        for name, attribute in schema.attributes.items()
        if attribute.default_value.type
    }
    said |= {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    if "axis" in said:
        said["axis"] %= len(given.graph.input[0].type.tensor_type.shape.dim)
    return node.op_type, list(node.input), said


@pytest.mark.parametrize(
    ("name", "kind", "book", "without"),
    # Shape inference refuses a MeanVarianceNormalization of anything but floats.
    [(name, *way) for name in CASES for way in WAYS if way[0] == "float" or not name.startswith("Mean")],
)
def test_a_normalization_comes_back(name: str, kind: str, book: str, without: tuple[str, ...]) -> None:
    given = model(name, kind)
    expanded = reducelower.expand(given, ops=[name.split()[0]], rules=book, without_types=without)
    assert len(expanded.graph.node) > 1
    raised = raise_with_plan(expanded, by_hand=False)
    checker.check_model(raised.model, full_check=True)
    assert meaning(raised.model) == meaning(given)
    assert not raised.plan.notes


def run(given: ModelProto, x: np.ndarray) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(given.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": x})[0])


OTHERS = {
    "Abs": "Neg",
    "Max": "Min",
    "Min": "Max",
    "Add": "Sub",
    "Mul": "Div",
    "Div": "Mul",
    "Sub": "Add",
    "Log": "Exp",
}


def changed(given: ModelProto) -> Iterator[ModelProto]:
    """The model with one operator or one number replaced by another, for each of them."""
    for index, node in enumerate(given.graph.node):
        instead = OTHERS.get(node.op_type, "ReduceMin" if node.op_type.startswith("Reduce") else "Sigmoid")
        if node.op_type != "Shape" and (instead != "Sigmoid" or len(node.input) == 1):
            other = ModelProto()
            other.CopyFrom(given)
            other.graph.node[index].op_type = instead
            yield other
    for index, tensor in enumerate(given.graph.initializer):
        if tensor.data_type == TensorProto.FLOAT and tensor.name not in ("s", "b"):
            other = ModelProto()
            other.CopyFrom(given)
            value = numpy_helper.to_array(tensor) * np.float32(0.75)
            other.graph.initializer[index].CopyFrom(numpy_helper.from_array(value, tensor.name))
            yield other


@pytest.mark.parametrize("name", ["LayerNormalization without bias", "GroupNormalization", "LogSoftmax"])
def test_a_body_with_any_node_or_number_changed_computes_what_it_did(name: str) -> None:
    given = model(name, "float")
    random = np.random.default_rng(0)
    for value in given.graph.input[1:]:
        shape = [size.dim_value for size in value.type.tensor_type.shape.dim]
        vector = random.normal(1, 0.2, shape).astype(np.float32)
        given.graph.initializer.append(numpy_helper.from_array(vector, value.name))
    del given.graph.input[1:]
    expanded = reducelower.expand(given, ops=[name.split()[0]], rules="stable")
    shape = [size.dim_value for size in given.graph.input[0].type.tensor_type.shape.dim]
    x = random.normal(size=shape).astype(np.float32)
    for other in changed(expanded):
        before, after = run(other, x), run(reducelower.raise_reductions(other), x)
        held = np.isfinite(before)
        np.testing.assert_allclose(after[held], before[held], rtol=1e-4, atol=1e-5)
