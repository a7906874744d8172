"""What the type of a value says."""

from __future__ import annotations

from typing import NamedTuple

from onnx import TypeProto

from reducelower.model.schemas import type_string
from reducelower.model.value_info import without_made_up_symbols

__all__ = ["KnownType", "known_type"]


class KnownType(NamedTuple):
    """What the type of a value says.

    Attributes:
        proto: the type, without symbols that inference made up.
        data: its bytes.
        is_whole: whether it leaves nothing to be inferred: neither what it is nor, of a tensor, the shape.
        element_type: the element type of a tensor; None if it does not say, or is not of a tensor.
        shape: the shape of a tensor, None standing for a size that is not a number; None if even the rank is unknown.
        leaves_sizes_open: whether some size has neither a number nor a name, so that inference may know more.
    """

    proto: TypeProto
    data: bytes
    is_whole: bool
    element_type: int | None
    shape: tuple[int | None, ...] | None
    leaves_sizes_open: bool


def known_type(found: TypeProto) -> KnownType:
    """What a type says."""
    is_tensor = found.WhichOneof("value") == "tensor_type"
    has_shape = is_tensor and found.tensor_type.HasField("shape")
    sizes = tuple(
        dim.dim_value if dim.WhichOneof("value") == "dim_value" else None for dim in found.tensor_type.shape.dim
    )
    proto = without_made_up_symbols(found)
    return KnownType(
        proto,
        proto.SerializeToString(),
        type_string(found) is not None and (has_shape or not is_tensor),
        found.tensor_type.elem_type or None if is_tensor else None,
        sizes if has_shape else None,
        any(dim.WhichOneof("value") is None for dim in proto.tensor_type.shape.dim),
    )
