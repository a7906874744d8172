"""The ways in which Constant nodes hold a value."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import AttributeProto, NodeProto, TensorProto, helper, numpy_helper

__all__ = ["HELD_IN", "element_type_of_constant", "tensor_in", "tensor_of"]

HELD_IN: Mapping[str, tuple[int, str]] = {
    "value_int": (TensorProto.INT64, "i"),
    "value_ints": (TensorProto.INT64, "ints"),
    "value_float": (TensorProto.FLOAT, "f"),
    "value_floats": (TensorProto.FLOAT, "floats"),
    "value_string": (TensorProto.STRING, "s"),
    "value_strings": (TensorProto.STRING, "strings"),
}
"""The attributes of Constant besides tensors: the element type of each, and the field with its elements."""


def tensor_of(node: NodeProto) -> TensorProto | None:
    """The dense tensor of a Constant node; None if it refers to a function attribute or has none."""
    return next(filter(None, map(tensor_in, node.attribute)), None)


def tensor_in(attribute: AttributeProto) -> TensorProto | None:
    """The dense tensor that an attribute of a Constant node holds; None if it refers to a function attribute."""
    if attribute.ref_attr_name:
        return None
    if attribute.name == "value":
        return attribute.t
    if attribute.name not in HELD_IN:
        return None
    element_type, field = HELD_IN[attribute.name]
    content = getattr(attribute, field)
    if element_type != TensorProto.STRING:
        return numpy_helper.from_array(np.array(content, helper.tensor_dtype_to_np_dtype(element_type)))
    # Not through numpy, which holds text, so that any bytes stay as they are.
    is_list = attribute.name == "value_strings"
    return helper.make_tensor("", element_type, [len(content)] if is_list else [], content if is_list else [content])


def element_type_of_constant(node: NodeProto) -> int:
    """The element type of a Constant node's output; 0 if its attribute does not determine it."""
    for attribute in node.attribute:
        if attribute.name == "value":
            return attribute.t.data_type
        if attribute.name == "sparse_value":
            return attribute.sparse_tensor.values.data_type
        if attribute.name in HELD_IN:
            return HELD_IN[attribute.name][0]
    return 0
