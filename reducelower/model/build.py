"""Making nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import NodeProto

from reducelower.model.attributes import make_attribute

__all__ = ["copy_marks", "make_node"]


def make_node(op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> NodeProto:
    """A node named after its first output, as every node the tool adds is."""
    node = NodeProto(op_type=op_type, name=outputs[0], input=inputs, output=outputs)
    for name, value in attributes.items():
        node.attribute.append(make_attribute(name, value))
    return node


def copy_marks(source: NodeProto, node: NodeProto) -> None:
    """Give a node the name, doc string and metadata of the node whose output it yields now."""
    node.name = source.name
    node.doc_string = source.doc_string
    del node.metadata_props[:]
    node.metadata_props.extend(source.metadata_props)
