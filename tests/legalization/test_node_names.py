"""Nodes that come in get names that no node of the model has: onnxruntime refuses two nodes of one name."""

from __future__ import annotations

from collections import Counter

import pytest
from onnx import ModelProto, checker, parser

import reducelower
from reducelower.model.graph import all_nodes

# Operators whose second and third outputs other operators yield below.
OPERATORS = {
    "LayerNormalization": "a, b, c = LayerNormalization (x, s)",
    "BatchNormalization": "a, b, c = BatchNormalization <training_mode = 1> (x, s, s, s, s)",
    "Dropout": "a, b = Dropout (x)",
    "Attention": "a, , , b = Attention <qk_matmul_output_mode = 1> (u, u, u)",
    "DynamicQuantizeLinear": "a, b, c = DynamicQuantizeLinear (x)",
    "QuantizeLinear": "a = QuantizeLinear <output_dtype = 3> (x, q)  b = Cast <to = 1> (a)",
}


def beside(text: str) -> ModelProto:
    """The operator, and nodes beside it that are called like its outputs."""
    model = parser.parse_model(f"""<ir_version: 11, opset_import: ["": 23]>
        g (float[2,3,3] x, float[2,2,3,3] u) => (float[2,3,3] y)
        <float[3] s = {{1, 2, 3}}, float q = {{0.5}}> {{ {text}  y = Neg (x) }}""")
    for node in list(model.graph.node):
        for name in filter(None, node.output):
            model.graph.node.add(op_type="Identity", name=name, input=[name], output=[f"{name}_again"])
    return model


@pytest.mark.parametrize("operator", OPERATORS)
def test_no_node_that_comes_in_is_called_like_another(operator: str) -> None:
    model = beside(OPERATORS[operator])
    written = 0
    for target in (6, 9, 12, 14, 17, 20):
        try:
            converted = reducelower.convert_version(model, target)
        except reducelower.ConversionError:
            continue
        checker.check_model(converted, full_check=True)
        names = Counter(node.name for node in all_nodes(converted) if node.name)
        assert max(names.values()) == 1, names.most_common(1)
        written += len(converted.graph.node) != len(model.graph.node)
    assert written
