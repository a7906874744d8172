"""What `expand` makes of a normalization, `raise` puts together again."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, checker, helper, numpy_helper, parser

import reducelower
from reducelower.recompose import raise_with_plan
from tests.models import yields
from tests.recompose.listed import changed

CASES = {
    "LayerNormalization": (17, "(x, s, b)", "[2, 3, 8]", "[8]"),
    "LayerNormalization without bias": (17, "<axis = -1, epsilon = 0.001> (x, s)", "[2, 3, 8]", "[8]"),
    "LayerNormalization of two axes": (21, "<axis = 1, epsilon = 1e-12> (x, s, b)", "[2, 3, 8]", "[3, 8]"),
    "RMSNormalization": (23, "<epsilon = 0.000001> (x, s)", "[2, 3, 8]", "[8]"),
    "GroupNormalization": (21, "<num_groups = 2> (x, s, b)", "[2, 4, 5, 3]", "[4]"),
    "InstanceNormalization": (17, "<epsilon = 0.1> (x, s, b)", "[2, 4, 5, 3]", "[4]"),
    "InstanceNormalization of sequences": (22, "(x, s, b)", "[2, 4, 5]", "[4]"),
    "LpNormalization": (18, "<axis = 1> (x)", "[2, 4, 8]", ""),
    "LpNormalization of magnitudes": (18, "<p = 1> (x)", "[2, 4, 8]", ""),
    "Softmax": (13, "(x)", "[2, 4, 8]", ""),
    "LogSoftmax": (18, "<axis = 1> (x)", "[2, 4, 8]", ""),
}
WAYS = [("float", "spec"), ("float", "stable"), ("float16", "spec"), ("float16", "stable"), ("double", "stable")]


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
    ("name", "kind", "book"),
    [(name, *way) for name in CASES for way in WAYS],
)
def test_a_normalization_comes_back(name: str, kind: str, book: str) -> None:
    given = model(name, kind)
    expanded = reducelower.expand(given, ops=[name.split()[0]], rules=book)
    assert len(expanded.graph.node) > 1
    raised = raise_with_plan(expanded, by_hand=False)
    checker.check_model(raised.model, full_check=True)
    assert meaning(raised.model) == meaning(given)
    assert not raised.plan.notes + raised.plan.left


@pytest.mark.parametrize("book", ["spec", "stable"])
@pytest.mark.parametrize("name", ["LayerNormalization", "LpNormalization"])
def test_over_axes_that_a_run_tells_nothing_is_raised(name: str, book: str) -> None:
    """Not even where the data has as many dimensions as the operator goes over."""
    given = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> '
        f"g (float[4] x{', float[4] s' if name.startswith('Layer') else ''}) => (float[4] y) "
        f"{{ y = {name} (x{', s' if name.startswith('Layer') else ''}) }}"
    )
    expanded = reducelower.expand(given, ops=[name], rules=book)
    axes = next(value for value in expanded.graph.initializer if value.data_type == TensorProto.INT64)
    expanded.graph.input.append(helper.make_tensor_value_info(axes.name, TensorProto.INT64, [None]))
    expanded.graph.initializer.remove(axes)
    assert name not in {node.op_type for node in reducelower.raise_reductions(expanded, ops=[name]).graph.node}


def test_a_result_of_another_type_than_the_data_is_not_raised() -> None:
    """Shape inference gives the result of RMSNormalization the type of the data, and its page that of the scale."""
    given = parser.parse_model(
        '<ir_version: 11, opset_import: ["": 23]> g (float16[1, 2, 2] x, float16[2] s) => (float16[1, 2, 2] y) '
        "{ y = RMSNormalization <axis = 1> (x, s) }"
    )
    raised = reducelower.raise_reductions(reducelower.expand(given, ops=["RMSNormalization"]))
    checker.check_model(raised, full_check=True)


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
        before, after = (yields(each, {"x": x})[0] for each in (other, reducelower.raise_reductions(other)))
        held = np.isfinite(before)
        np.testing.assert_allclose(after[held], before[held], rtol=1e-4, atol=1e-5)
