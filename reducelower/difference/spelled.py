"""Types, constants and attributes as short text on one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import AttributeProto, NodeProto, TypeProto, helper

from reducelower.model.schemas import DEFAULT_DOMAINS, element_type_name, schema
from reducelower.text import shape_text

__all__ = ["attribute_text", "constant_text", "input_name", "operator_name", "type_text"]

_FEW_VALUES = 8
_LONGEST_VALUE = 20


def type_text(value_type: TypeProto) -> str:
    """A type in ONNX's text syntax, such as ``float[N,3]``; empty if nothing is stated."""
    kind = value_type.WhichOneof("value")
    if kind == "tensor_type":
        tensor = value_type.tensor_type
        if not tensor.HasField("shape"):
            return f"{element_type_name(tensor.elem_type)}[...]"
        dims = tuple(
            dim.dim_param or (dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None)
            for dim in tensor.shape.dim
        )
        return f"{element_type_name(tensor.elem_type)}{shape_text(dims)}"
    if kind in ("sequence_type", "optional_type"):
        return f"{kind.removesuffix('_type')}({type_text(getattr(value_type, kind).elem_type)})"
    return "" if kind is None else kind.removesuffix("_type")


def constant_text(value: Any) -> str:
    """The values of a small constant, else its element type and shape."""
    array = np.asarray(value)
    text = ""
    if array.size <= _FEW_VALUES:
        texts = [_number_text(item) for item in array.ravel()]
        text = f"[{', '.join(texts)}]" if array.ndim else texts[0]
    return text if 0 < len(text) <= _LONGEST_VALUE else f"{_array_type(array)}{shape_text(array.shape)}"


def _array_type(array: Any) -> str:
    return "string" if array.dtype.kind in "OSUT" else element_type_name(helper.np_dtype_to_tensor_dtype(array.dtype))


def attribute_text(attribute: AttributeProto) -> str:
    """The value of an attribute."""
    if attribute.ref_attr_name:
        return f"@{attribute.ref_attr_name}"
    if attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
        return "graph"
    if attribute.type == AttributeProto.TENSOR:
        return f"{element_type_name(attribute.t.data_type)}{shape_text(tuple(attribute.t.dims))}"
    value = helper.get_attribute_value(attribute)
    if attribute.name in ("to", "dtype") and isinstance(value, int):
        return element_type_name(value)
    if isinstance(value, bytes):
        return repr(value.decode(errors="replace"))
    if isinstance(value, float):
        return _number_text(np.float32(value))
    if isinstance(value, Sequence) and not isinstance(value, str):
        texts = [_number_text(np.float32(item)) if isinstance(item, float) else str(item) for item in value]
        return f"[{', '.join(texts)}]"
    return str(value)


def _number_text(number: Any) -> str:
    """A number in as few digits as its type needs: a float 1e-05 does not become 9.99999975e-06."""
    if isinstance(number, np.floating):
        return f"{float(str(number)):.9g}"
    return str(number.item() if isinstance(number, np.generic) else number)


def operator_name(node: NodeProto) -> str:
    """A node's operator, prefixed by its domain if that is not the default one."""
    return node.op_type if node.domain in DEFAULT_DOMAINS else f"{node.domain}.{node.op_type}"


def input_name(node: NodeProto, position: int, opset: int) -> str:
    """The name of an input in the operator's specification."""
    operator = schema(node.op_type, opset) if node.domain in DEFAULT_DOMAINS else None
    formal = list(operator.inputs) if operator is not None else []
    return str(formal[min(position, len(formal) - 1)].name) if formal else f"input {position}"
