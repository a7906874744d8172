"""The type of a value is inferred from what it is computed from, and is that of the whole model."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper, parser

from reducelower.model.inference import ContradictionError, Inference
from reducelower.model.inference.ancestors import Ancestors

HEADER = '<ir_version: 8, opset_import: ["": 17]>'
BESIDE = " ".join(f"n{at} = Relu(n{at - 1})" for at in range(1, 40))
TEXT = f"""{HEADER} g (float[a,6] x, float[4] n0, bool c) => (float[p,q] y, float[u] n39)
    <int64[2] s = {{-1, 3}}, float[3,5] w = {{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}> {{
        r = Reshape(x, s)  m = MatMul(r, w)  t = Transpose(m)  {BESIDE}
        i = If(c) <then_branch = g1 () => (float[k] z) {{ z = Identity(n0) }},
                   else_branch = g2 () => (float[k] z) {{ z = Neg(n0) }}>
        o = Abs(i)  y = Relu(t)
    }}"""


def test_a_part_is_as_large_as_it_has_to_be() -> None:
    ancestors = Ancestors(parser.parse_model(TEXT))
    part = ancestors.model_of("t", 3)
    assert part is not None
    assert [node.output[0] for node in part.graph.node] == ["r", "m", "t"]
    assert {value.name for value in part.graph.input} == {"x"}
    assert {tensor.name for tensor in part.graph.initializer} == {"s", "w"}
    assert ancestors.model_of("t", 2) is None
    assert ancestors.model_of("o", 100) is None, "a graph inside reads what it likes"
    assert ancestors.model_of("x", 100) is None


def test_weights_are_left_behind() -> None:
    model = parser.parse_model(f"{HEADER} g (float[a,64] x) => (float[p,q] y) {{ y = MatMul(x, w) }}")
    model.graph.initializer.append(numpy_helper.from_array(np.ones((64, 64), np.float32), "w"))
    part = Ancestors(model).model_of("y", 1)
    assert part is not None
    assert [(tensor.dims, tensor.raw_data) for tensor in part.graph.initializer] == [([64, 64], b"")]


def test_types_are_those_of_the_whole_model() -> None:
    model = parser.parse_model(TEXT)
    few, whole = Inference(lambda: model), Inference(lambda: model)
    assert few.type_by_ancestors("t") == whole.type((), "t")
    assert whole.type((), "t").tensor_type.shape.dim[0].dim_value == 5
    assert not few.has_run


def test_no_more_is_looked_into_by_itself_than_a_part_of_the_model() -> None:
    model = parser.parse_model(TEXT)
    few = Inference(lambda: model)
    assert [few.type_by_ancestors(f"n{at}") is not None for at in (4, 20, 7)] == [True, False, True]
    assert few.type_by_ancestors("n9") is None


def test_a_stated_type_that_contradicts_is_told() -> None:
    model = parser.parse_model(TEXT)
    model.graph.value_info.add(name="m").type.tensor_type.elem_type = 1
    for size in (7, 7, 7):
        model.graph.value_info[-1].type.tensor_type.shape.dim.add().dim_value = size
    with pytest.raises(ContradictionError):
        Inference(lambda: model, lenient=False).type_by_ancestors("t")


def test_a_function_is_looked_into_with_the_whole_model() -> None:
    text = """<ir_version: 8, opset_import: ["": 17, "local": 1]> g (float[2] x) => (float[n] y) {
        a = local.F(x) b = Relu(a) c = Relu(b) d = Relu(c) y = Relu(d) }
        <domain: "local", opset_import: ["": 17]> F (x) => (y) { y = Neg(x) }"""
    model: ModelProto = parser.parse_model(text)
    assert Ancestors(model).model_of("b", 9) is None
    assert Inference(lambda: model).type((), "b") is not None
