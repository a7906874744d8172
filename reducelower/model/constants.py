"""The ways in which Constant nodes hold a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from onnx import AttributeProto, NodeProto, TensorProto, numpy_helper

if TYPE_CHECKING:
    from reducelower.model.numbers import Array

__all__ = ["HELD_IN", "element_type_of_constant", "tensor_of"]

HELD_IN: Mapping[str, Callable[[AttributeProto], Array]] = {
    "value_int": lambda attribute: np.array(attribute.i, dtype=np.int64),
    "value_ints": lambda attribute: np.array(attribute.ints, dtype=np.int64),
    "value_float": lambda attribute: np.array(attribute.f, dtype=np.float32),
    "value_floats": lambda attribute: np.array(attribute.floats, dtype=np.float32),
}
"""The numbers that an attribute holds, by its name; `value` and `sparse_value` hold tensors."""

_ELEMENT_TYPES = {
    "value_int": TensorProto.INT64,
    "value_ints": TensorProto.INT64,
    "value_float": TensorProto.FLOAT,
    "value_floats": TensorProto.FLOAT,
    "value_string": TensorProto.STRING,
    "value_strings": TensorProto.STRING,
}


def tensor_of(node: NodeProto) -> TensorProto | None:
    """The dense tensor of a Constant node; None if it refers to a function attribute or has none."""
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            return None
        if attribute.name == "value":
            return attribute.t
        if attribute.name in HELD_IN:
            return numpy_helper.from_array(HELD_IN[attribute.name](attribute))
    return None


def element_type_of_constant(node: NodeProto) -> int:
    """The element type of a Constant node's output; 0 if its attribute does not determine it."""
    for attribute in node.attribute:
        if attribute.name == "value":
            return attribute.t.data_type
        if attribute.name == "sparse_value":
            return attribute.sparse_tensor.values.data_type
        if attribute.name in _ELEMENT_TYPES:
            return _ELEMENT_TYPES[attribute.name]
    return 0
