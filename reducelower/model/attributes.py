"""Make nodes; read and write their attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import AttributeProto, NodeProto, helper

from reducelower.errors import RefusedError

__all__ = [
    "NAMING_TYPES",
    "attribute_of",
    "copied",
    "copy_marks",
    "drop_attribute",
    "make_attribute",
    "make_node",
    "refuse_reference",
    "set_attribute",
    "value_of",
]

NAMING_TYPES = frozenset({"to", "dtype", "output_dtype", "output_datatype"})
"""Attributes whose integer is an element type (`TensorProto.DataType`)."""


def attribute_of(node: NodeProto, name: str) -> AttributeProto | None:
    """Return the attribute of that name, or None."""
    for attribute in node.attribute:
        if attribute.name == name:
            return attribute
    return None


def value_of(node: NodeProto, name: str, default: Any = None) -> Any:
    """Return the value of an attribute, or the default if the node lacks it; strings come as str.

    Raises:
        RefusedError: the attribute refers to an attribute of the enclosing function, so its value is unknown.
    """
    attribute = attribute_of(node, name)
    if attribute is None:
        return default
    refuse_reference(attribute)
    value = helper.get_attribute_value(attribute)
    return value.decode() if isinstance(value, bytes) else value


def refuse_reference(attribute: AttributeProto) -> None:
    """Raise RefusedError for an attribute of the enclosing function, whose value differs between calls."""
    if attribute.ref_attr_name:
        raise RefusedError(
            f"its attribute {attribute.name} refers to {attribute.ref_attr_name!r} of the function, so its value is "
            "not known",
            "inline the function first",
        )


def drop_attribute(node: NodeProto, name: str) -> None:
    """Remove the attribute of that name, if there is one."""
    for index, attribute in enumerate(node.attribute):
        if attribute.name == name:
            del node.attribute[index]
            return


def set_attribute(node: NodeProto, name: str, value: Any) -> None:
    """Set an attribute, replacing its earlier value."""
    drop_attribute(node, name)
    node.attribute.append(make_attribute(name, value))


def copied(attribute: AttributeProto, name: str = "") -> AttributeProto:
    """A copy of an attribute, perhaps under another name."""
    copy = AttributeProto()
    copy.CopyFrom(attribute)
    copy.name = name or attribute.name
    return copy


def make_attribute(name: str, value: Any) -> AttributeProto:
    """Make an attribute whose type follows from its value; an empty list becomes INTS."""
    empty = isinstance(value, (list, tuple)) and not value
    return helper.make_attribute(name, value, attr_type=AttributeProto.INTS if empty else None)


def make_node(op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> NodeProto:
    """Make a node named after its first output, like all added nodes."""
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
