"""Pairs of QuantizeLinear and DequantizeLinear with the same parameters, as quantized models have them.

If each was expanded on its own, the second would undo casts and shifts of the first. So the second gets the value that
the first quantized as an additional input after the zero point, which only rules see.
"""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from reducelower.legalization.legality import Treatments
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.scope.graph import GraphScope

__all__ = ["QUANTIZED", "may_be_expanded", "with_quantized"]

QUANTIZED = 3
"""The number of the additional input of DequantizeLinear."""

_BYTES = (TensorProto.INT8, TensorProto.UINT8)
_PLACE = ("axis", "block_size")


def may_be_expanded(table: Treatments, goal: int) -> bool:
    """Whether rules may expand DequantizeLinear: the target may lack its element types, or blocks."""
    treatment = table["DequantizeLinear"]
    return goal < 21 <= table.opset and not (treatment.is_nothing or treatment.expand)


def with_quantized(data: bytes, graph: GraphScope) -> bytes:
    """The serialized node; the second of a pair with float32 data also reads the value that the first quantized."""
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
    quantize = graph.producer(quantized) if graph.home(quantized) is graph else None
    if quantize is None or quantize.op_type != "QuantizeLinear" or quantize.domain not in DEFAULT_DOMAINS:
        return data
    attributes = [{each.name: each for each in one.attribute} for one in (quantize, node)]
    has_same_inputs = quantize.input[1:] == node.input[1:] and all(
        attribute.name in _PLACE for one in attributes for attribute in one.values()
    )
    if not has_same_inputs or attributes[0] != attributes[1] or graph.element_type(quantized) in (None, *_BYTES):
        return data
    if any(graph.element_type(name) != TensorProto.FLOAT for name in (quantize.input[0], node.input[1])):
        return data
    node.input.extend([""] * (QUANTIZED - len(node.input)) + [quantize.input[0]])
    return node.SerializeToString()
