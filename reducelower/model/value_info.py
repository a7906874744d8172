"""Types that graphs state, and entries of value_info as bytes: thousands of them are added to a graph at once."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

from onnx import GraphProto, TensorProto, TypeProto

from reducelower.model.wire import LENGTH, varint

__all__ = ["entry", "is_known", "may_be_of_one_shape", "sizes", "tensor_type", "without_made_up_symbols"]

_ENTRY = varint(GraphProto.VALUE_INFO_FIELD_NUMBER << 3 | LENGTH)
_NAME, _TYPE = 0x0A, 0x12

_MADE_UP = "unk__"


def without_made_up_symbols(value_type: TypeProto) -> TypeProto:
    """A type without the symbols that inference makes up for sizes it does not know; the type itself if it has none.

    They mean nothing to anybody else, and every value has its own.
    """
    if not any(dim.dim_param.startswith(_MADE_UP) for dim in value_type.tensor_type.shape.dim):
        return value_type
    kept = deepcopy(value_type)
    for dim in kept.tensor_type.shape.dim:
        if dim.dim_param.startswith(_MADE_UP):
            dim.Clear()
    return kept


def tensor_type(tensor: TensorProto) -> TypeProto:
    """The type of a tensor: its element type and its shape."""
    found = TypeProto()
    found.tensor_type.elem_type = tensor.data_type
    shape = found.tensor_type.shape
    shape.SetInParent()  # A scalar has a shape as well: one without dimensions.
    for size in tensor.dims:
        shape.dim.add(dim_value=size)
    return found


def entry(name: bytes, value_type: bytes) -> bytes:
    """The bytes of a GraphProto that states the type of one value and nothing else.

    The name is in UTF-8, the type serialized, from `without_made_up_symbols`.
    """
    value = b"".join((bytes([_NAME]), varint(len(name)), name, bytes([_TYPE]), varint(len(value_type)), value_type))
    return _ENTRY + varint(len(value)) + value


def is_known(found: TypeProto | None) -> bool:
    """Whether a type leaves nothing open but sizes."""
    if found is None:
        return False
    kind = found.WhichOneof("value")
    if kind != "tensor_type":
        return kind is not None
    return bool(found.tensor_type.elem_type) and found.tensor_type.HasField("shape")


def sizes(value_type: TypeProto | None) -> list[int | None] | None:
    """The sizes of a tensor, None where they are not numbers; None where the rank is not stated."""
    if value_type is None or not value_type.tensor_type.HasField("shape"):
        return None
    dims = value_type.tensor_type.shape.dim
    return [dim.dim_value if dim.WhichOneof("value") == "dim_value" else None for dim in dims]


def may_be_of_one_shape(left: Sequence[int | None], right: Sequence[int | None]) -> bool:
    """Whether no size that is known of two tensors tells them apart."""
    return len(left) == len(right) and all(a == b for a, b in zip(left, right, strict=True) if None not in (a, b))
