"""Element types and ranks are found where shape inference stops, and what is found is what a run shows."""

from __future__ import annotations

from pathlib import Path
from string import Template
from typing import Any

import pytest
from onnx import ModelProto, TensorProto, helper

from reducelower.types import Inference
from tests.models import model as written
from tests.models import run
from tests.table import VOCABULARY, combinations, rows

IMPORTS = '"com.microsoft" : 1, "ai.onnx.ml" : 3, "my" : 1'
ROWS = rows(Path(__file__).with_name("inferred.toml"), fields=("graph", "given", "told", "each"))


def inferred(model: ModelProto) -> dict[str, tuple[int, int | None]]:
    """Element type and rank by name, as far as they are found in the main graph."""
    found = {}
    for name, value in Inference(model).types(()).items():
        tensor = value.tensor_type
        found[name] = tensor.elem_type, len(tensor.shape.dim) if tensor.HasField("shape") else None
    return found


def shown(model: ModelProto, feeds: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Element type and rank of everything the nodes of the main graph yield, in a run of onnxruntime."""
    open_model = ModelProto()
    open_model.CopyFrom(model)
    names = [name for node in model.graph.node for name in node.output if name]
    del open_model.graph.output[:]
    open_model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)
    values = dict(zip(names, run(open_model, feeds), strict=True))
    return {name: (helper.np_dtype_to_tensor_dtype(value.dtype), value.ndim) for name, value in values.items()}


@pytest.mark.parametrize("claim", ROWS)
def test_types_and_ranks_are_found(claim: str) -> None:
    """Those that a row tells, or all of them as a run shows them."""
    row = ROWS[claim]
    for chosen in combinations(row.get("each", {})):
        model = written(Template(row["graph"]).substitute(chosen), 17, imports=IMPORTS)
        found = inferred(model)
        for name, told in {**row.get("told", {}), **chosen.get("told", {})}.items():
            kind, rank = (*told, None, None)[:2]
            assert found.get(name) == (kind and (TensorProto.DataType.Value(kind.upper()), rank)), name
        if "given" not in row:
            continue
        seen = shown(model, {name: eval(text, VOCABULARY) for name, text in row["given"].items()})
        # What a Loop carries may change its shape, so only its element type is sure.
        carried = {node.output[0] for node in model.graph.node if node.op_type == "Loop"}
        for value, (element_type, rank) in seen.items():
            assert found[value] == (element_type, None if value in carried else rank), value


@pytest.mark.parametrize("scanned", [7, -7, 2.5, "one", [1]])
def test_a_scan_of_so_many_inputs_as_it_does_not_have_is_passed_over(scanned: object) -> None:
    nodes = (
        "u = com.microsoft.Foo (x)  y = Scan <num_scan_inputs = 1, body = b (float r) => (float s) { s = Abs (r) }> (u)"
    )
    model = written(f"(float[2, 3] x) => (float[P, Q] y) {{ {nodes} }}", 17, imports=IMPORTS)
    model.graph.node[1].attribute[0].CopyFrom(helper.make_attribute("num_scan_inputs", scanned))
    assert inferred(model)["y"] == (TensorProto.FLOAT, 2)


@pytest.mark.parametrize(("axes", "rank"), [(1, None), ([1], 1)])
def test_axes_that_are_no_list_tell_no_rank(axes: object, rank: int | None) -> None:
    model = written("(float[2,3] x) => (y) { y = ReduceMax <keepdims = 0> (x) }", 17)
    model.graph.node[0].attribute.append(helper.make_attribute("axes", axes))
    assert inferred(model)["y"] == (TensorProto.FLOAT, rank)


@pytest.mark.parametrize("count", [2**62, -5])
def test_no_number_of_axes_is_believed_that_no_tensor_has(count: int) -> None:
    model = written("(float[2] x, int64[2] a) => (float[Q] y) { y = Unsqueeze (x, a) }", 17)
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_value = count
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert inferred(model)["y"] == (TensorProto.FLOAT, None)


@pytest.mark.parametrize("op_type", ["Constant", "ReduceSum", "Shape", "Scan"])
def test_a_node_that_yields_nothing_is_passed_over(op_type: str) -> None:
    model = written("(float[2, 3] x) => (float[Q] y) { u = com.microsoft.Foo (x)  y = Abs (u) }", 17, imports=IMPORTS)
    node = model.graph.node.add(op_type=op_type)
    node.attribute.append(helper.make_attribute("value_ints", [1]))
    assert inferred(model)["y"] == (TensorProto.FLOAT, 1)


def test_of_a_scan_that_refers_to_an_attribute_of_no_function_nothing_is_followed() -> None:
    """How many inputs it scans is not known; to ask for a shape raised what only rules raise."""
    nodes = "s = Scan <num_scan_inputs: int = @n, body = b (v) => (w) { w = Neg (v) }> (x)  y = Abs (s)"
    model = written(f"(float[3, 2] x) => (float[3, 2] y) {{ {nodes} }}", 17)
    assert inferred(model)["s"] == (TensorProto.FLOAT, None)
