"""Attention whose value is of another float type than its query, and its caches across opset version 25.

The schema's function body takes query and value for one type, so they are computed in the wider one.

Source: https://onnx.ai/onnx/operators/onnx__Attention.html (23, 24, 25).
"""

from __future__ import annotations

from collections.abc import Mapping

from onnx import NodeProto, TensorProto

from reducelower.adapters.absent import expresses
from reducelower.adapters.builder import Writer
from reducelower.adapters.registry import Outcome, raises
from reducelower.scope.scope import Scope

__all__: list[str] = []

_WIDTH: Mapping[int, int] = {
    TensorProto.BFLOAT16: 1,
    TensorProto.FLOAT16: 1,
    TensorProto.FLOAT: 2,
    TensorProto.DOUBLE: 3,
}
_INPUTS = (0, 1, 2, 3, 4, 5)
"""Query, key, value, mask, past key and past value; what comes behind are lengths."""

_TYPE_OF_OUTPUT = (0, 0, 2, 0)
"""Which input each output shares its element type with: result, present key, present value, output of the product."""


@expresses("Attention", opset=24)
def _of_one_type(node: NodeProto, scope: Scope) -> list[NodeProto] | None:
    types = {index: scope.element_type(name) for index, name in enumerate(node.input) if name and index in _INPUTS}
    query, value = types.get(0), types.get(2)
    if query is None or value is None or query == value:
        return None
    body = Writer(node, scope)
    # Two sixteen-bit floats of different kinds have only float32 in common.
    wide = max(query, value, TensorProto.FLOAT, key=lambda found: _WIDTH.get(found, 0))
    inputs = [
        body.add("Cast", name, tail="wide", to=wide) if types.get(index) in _WIDTH and types[index] != wide else name
        for index, name in enumerate(node.input)
    ]
    tails = [f"output_{index}" if name else "" for index, name in enumerate(node.output)]
    results = body.add_many("Attention", inputs, tails)
    body.nodes[-1].attribute.extend(node.attribute)
    for index, result in enumerate(results):
        if result:
            body.yields("Cast", result, output=index, to=types[_TYPE_OF_OUTPUT[index]])
    return body.nodes


_PRESENT = {1: "present_key", 2: "present_value"}


@raises("Attention", 25)
def _raise_present(node: NodeProto, scope: Scope) -> Outcome:
    """Since 25 present_key and present_value are yielded together or not at all."""
    missing = [place for place in _PRESENT if len(node.output) <= place or not node.output[place]]
    if len(missing) != 1:
        return False
    while len(node.output) <= missing[0]:
        node.output.append("")
    node.output[missing[0]] = scope.fresh(node.name or node.output[0], f"/Attention/{_PRESENT[missing[0]]}")
    return True
