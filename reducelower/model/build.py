"""Make nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import NodeProto

from reducelower.model.attributes import make_attribute

__all__ = ["copy_marks", "make_node"]


def make_node(op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> NodeProto:
    """Make a node named after its first output, like every node that the tool adds."""
    node = NodeProto(op_type=op_type, name=outputs[0], input=inputs, output=outputs)
    for name, value in attributes.items():
        node.attribute.append(make_attribute(name, value))
    return node


def copy_marks(source: NodeProto, node: NodeProto) -> None:
    """Copy name, doc string and metadata from the node that used to compute this node's output."""
    node.name = source.name
    node.doc_string = source.doc_string
    del node.metadata_props[:]
    node.metadata_props.extend(source.metadata_props)
