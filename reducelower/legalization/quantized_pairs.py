"""QuantizeLinear and DequantizeLinear with the same parameters, one behind the other: how models carry quantization.

Written out each for itself, the second would undo casts and shifts of the first. So the second is told what the first
quantized, as an input of its own behind the zero point, which only rules see.
"""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from reducelower.legalization.legality import Treatments
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.scope.graph import GraphScope

__all__ = ["QUANTIZED", "are_written_out", "with_quantized"]

QUANTIZED = 3
"""The input of DequantizeLinear that says what was quantized."""

_BYTES = (TensorProto.INT8, TensorProto.UINT8)
_PLACE = ("axis", "block_size")


def are_written_out(table: Treatments, goal: int) -> bool:
    """Whether the target may lack element types that DequantizeLinear takes here, or blocks."""
    treatment = table["DequantizeLinear"] if goal < 21 <= table.opset else None
    return treatment is not None and not treatment.expand


def with_quantized(data: bytes, graph: GraphScope) -> bytes:
    """A serialized node; a DequantizeLinear of float32 also reads what was quantized, if it has the same parameters."""
    if b"DequantizeLinear" not in data:
        return data
    node = NodeProto.FromString(data)
    if (
        node.op_type != "DequantizeLinear"
        or node.domain not in DEFAULT_DOMAINS
        or not 2 <= len(node.input) <= QUANTIZED
    ):
        return data
    quantized = node.input[0]
    first = graph.producer(quantized) if graph.home(quantized) is graph else None
    if first is None or first.op_type != "QuantizeLinear" or first.domain not in DEFAULT_DOMAINS:
        return data
    attributes = [{each.name: each for each in one.attribute} for one in (first, node)]
    is_alike = first.input[1:] == node.input[1:] and all(
        found.name in _PLACE for one in attributes for found in one.values()
    )
    if not is_alike or attributes[0] != attributes[1] or graph.element_type(quantized) in (None, *_BYTES):
        return data
    if any(graph.element_type(name) != TensorProto.FLOAT for name in (first.input[0], node.input[1])):
        return data
    node.input.extend([""] * (QUANTIZED - len(node.input)) + [first.input[0]])
    return node.SerializeToString()
