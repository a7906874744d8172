"""SequenceMap below opset 17, by its schema's body: that reads what the graph inside states of its results.

Source: https://onnx.ai/onnx/operators/onnx__SequenceMap.html (17).
"""

from __future__ import annotations

from onnx import NodeProto

from reducelower.adapters.decompose import expresses
from reducelower.model.attributes import value_of
from reducelower.scope.scope import Scope


@expresses("SequenceMap", opset=17)
def _with_types(node: NodeProto, scope: Scope) -> None:
    """State the types of what the graph inside yields where they follow, and leave the rest to the schema."""
    for value, name in zip(value_of(node, "body").output, node.output, strict=False):
        known = scope.type(name) if name and not value.type.tensor_type.elem_type else None
        if known is not None:
            value.type.CopyFrom(known.sequence_type.elem_type)
