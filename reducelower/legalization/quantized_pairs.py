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
_PLACE = {"axis", "block_size"}


def may_be_expanded(table: Treatments, goal: int) -> bool:
    """Whether rules may expand DequantizeLinear: the target may lack its element types, or blocks."""
    treatment = table["DequantizeLinear"]
    return goal < 21 <= table.opset and not (treatment.is_nothing or treatment.expand)


def with_quantized(data: bytes, graph: GraphScope) -> bytes:
    """The serialized node; the second of a pair with float32 data also reads the value that the first quantized."""
    node = NodeProto.FromString(data) if b"DequantizeLinear" in data else NodeProto()
    is_dequantize = node.op_type == "DequantizeLinear" and node.domain in DEFAULT_DOMAINS
    made = graph.producer(node.input[0]) if is_dequantize and 2 <= len(node.input) <= QUANTIZED else None
    if made is None or made.op_type != "QuantizeLinear" or made.domain not in DEFAULT_DOMAINS:
        return data
    attributes, others = ({each.name: each for each in one.attribute} for one in (made, node))
    if made.input[1:] != node.input[1:] or attributes != others or not attributes.keys() <= _PLACE:
        return data
    element_types = [graph.element_type(name) for name in (node.input[0], made.input[0], node.input[1])]
    if element_types[0] in (None, *_BYTES) or element_types[1:] != [TensorProto.FLOAT] * 2:
        return data
    node.input.extend([""] * (QUANTIZED - len(node.input)) + [made.input[0]])
    return node.SerializeToString()
