"""What replaces a node is tidied: constants computed, equal nodes written once, nothing that only passes on."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper, parser, shape_inference
from onnx.reference import ReferenceEvaluator

from tests.models import converted

DEQUANTIZE = "(uint16[3] x) => (float[3] y) <float s = {0.5}, uint16 z = {7}> { y = DequantizeLinear (x, s, z) }"
NORMALIZE = "(float[2, 3, 8] x, float[8] s) => (float[2, 3, 8] y) { y = RMSNormalization (x, s) }"
ROTATE = (
    "(float[2, 3, 8] x, float[2, 3, 2] c, float[2, 3, 2] s) => (float[2, 3, 8] y) "
    "{ y = RotaryEmbedding <num_heads = 2> (x, c, s) }"
)


def model(opset: int, text: str) -> ModelProto:
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> g {text}')


@pytest.mark.opset(21)
def test_a_cast_of_a_small_constant_is_computed() -> None:
    after = converted(model(21, DEQUANTIZE), 13)
    held = {tensor.name: numpy_helper.to_array(tensor) for tensor in after.graph.initializer}
    assert "z" not in held
    assert any(value == 7 for value in held.values())


@pytest.mark.opset(23)
@pytest.mark.parametrize("text", [NORMALIZE, ROTATE])
@pytest.mark.parametrize("target", [13, 9])
def test_no_node_is_written_twice_or_passes_on_what_it_reads(text: str, target: int) -> None:
    after = converted(model(23, text), target)
    attributes = [[attribute.SerializeToString() for attribute in node.attribute] for node in after.graph.node]
    written = [(node.op_type, *node.input, *given) for node, given in zip(after.graph.node, attributes, strict=True)]
    assert len(written) == len(set(written))
    assert "Identity" not in [node.op_type for node in after.graph.node]


@pytest.mark.opset(23)
def test_no_value_is_cast_to_the_type_that_it_has() -> None:
    heads = "float[1, 4, 3, 8]"
    text = (
        f"({heads} q, float[1, 2, 3, 8] k, float[1, 2, 3, 8] v) => ({heads} y) "
        "{ y = Attention <is_causal = 1> (q, k, v) }"
    )
    after = shape_inference.infer_shapes(converted(model(23, text), 13))
    known = {value.name: value.type.tensor_type.elem_type for value in (*after.graph.value_info, *after.graph.input)}
    casts = [node for node in after.graph.node if node.op_type == "Cast" and node.output[0] != "y"]
    assert [node for node in casts if known.get(node.input[0]) == node.attribute[0].i] == []


def test_what_is_computed_from_known_sizes_is_a_constant_behind_a_rewrite_too() -> None:
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 13]>
        g (float[6,4] x, int64[1] by) => (int64[1] y)
            <int64[1] first = {0}, int64[1] end = {1}, int64[1] four = {4}>
        {
            sizes = Shape(x)
            rows = Slice(sizes, first, end)
            rest = Mod(rows, four)
            y = Add(rest, by)
        }
    """)
    result = converted(model, 9)
    assert [node.op_type for node in result.graph.node] == ["Where", "Add"]  # the rest of Mod is known
    found = ReferenceEvaluator(result).run(None, {"x": np.zeros((6, 4), np.float32), "by": np.array([5])})[0]
    assert found.tolist() == [6 % 4 + 5]
