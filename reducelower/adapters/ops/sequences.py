"""SequenceMap below opset 17, by its schema's body: that reads what the graph inside states of its results.

Source: https://onnx.ai/onnx/operators/onnx__SequenceMap.html (17).
"""

from __future__ import annotations

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses


@expresses("SequenceMap", opset=17)
def _with_types(op: Writer) -> None:
    """State the types of what the graph inside yields where they follow, and leave the rest to the schema."""
    for value, name in zip(op.attribute("body").output, op.node.output, strict=False):
        known = op.scope.type(name) if name and not value.type.tensor_type.elem_type else None
        if known is not None:
            value.type.CopyFrom(known.sequence_type.elem_type)
