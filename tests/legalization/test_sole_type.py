from pathlib import Path

import onnx
import pytest
from onnx import ModelProto, TensorProto, parser, shape_inference

from reducelower.model.census import Census
from reducelower.model.sole_type import sole_element_type

STORED = sorted((Path(__file__).parents[1] / "data").rglob("*.onnx"))


def sole(model: ModelProto) -> int | None:
    opset = next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    return sole_element_type(model.graph, Census.of_model(model.SerializeToString()), opset)


def parse(body: str, inputs: str = "float[2, 3] x", opset: int = 18) -> ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g ({inputs}) => (float[N] y) {body}')


def test_constants_that_are_read_as_axes_only_do_not_count() -> None:
    assert sole(parse("<int64[1] a = {1}> { s = ReduceSum (x, a) y = Relu (s) }")) == TensorProto.FLOAT
    assert sole(parse("{ a = Constant <value_ints = [1]> () s = ReduceSum (x, a) y = Relu (s) }")) == TensorProto.FLOAT


@pytest.mark.parametrize(
    "body",
    [
        "<int64[1] a = {1}> { b = Neg (a) y = ReduceSum (x, b) }",
        "<int64[1] a = {1}> { b = Concat <axis = 0> (a, a) y = ReduceSum (x, a) }",
        "{ a = Shape (x) y = Reshape (x, a) }",
        "{ c = Cast <to = 7> (x) y = Cast <to = 1> (c) }",
        "{ q = QuantizeLinear (x, x) y = Relu (x) }",
        "{ y = NoSuchOperator (x) }",
        "{ y = Dropout (x) }",
        # Which inputs are axes is told by how many inputs each node has.
        "<int64[1] a = {1}> { r = ReduceSum (x, a) s = ReduceSum (r) b = Neg (a) y = ReduceSum (s, b) }",
        "<int64[1] a = {1}> { b = Add (x) c = ReduceSum (b, a) y = ReduceSum (c, a) }",
    ],
)
def test_types_that_nodes_compute_with_count(body: str) -> None:
    assert sole(parse(body)) is None


def test_inputs_that_are_only_looked_up_with_do_not_count() -> None:
    model = parse("{ y = Gather (x, i) }", inputs="float[2, 3] x, int64[4] i")
    assert sole(model) == TensorProto.FLOAT


def test_a_constant_that_is_an_output_counts() -> None:
    model = parse("<int64[1] a = {1}> { y = ReduceSum (x, a) }")
    model.graph.output.add(name="a").type.tensor_type.elem_type = TensorProto.INT64
    assert sole(model) is None


def test_graphs_in_graphs_are_not_judged() -> None:
    branch = "g1 () => (float[N] z) { z = Relu (x) }"
    model = parse(f"{{ y = If (c) <then_branch = {branch}, else_branch = {branch}> }}", inputs="float[2] x, bool c")
    assert sole(model) is None


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_it_is_what_inference_finds_in_stored_models(path: Path) -> None:
    model = onnx.load(path, load_external_data=False)
    found = sole(model)
    if found is None:
        return
    del model.graph.value_info[:]
    computed = {name for node in model.graph.node if node.op_type != "Constant" for name in node.output}
    for value in shape_inference.infer_shapes(model).graph.value_info:
        if value.name in computed:
            assert value.type.tensor_type.elem_type == found, value.name
