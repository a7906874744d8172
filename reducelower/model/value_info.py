"""Types that graphs state, and value_info entries as bytes, which are fast to add by the thousand."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from itertools import chain

from onnx import GraphProto, ModelProto, TensorProto, TensorShapeProto, TypeProto

from reducelower.model.graph import all_nodes, subgraphs
from reducelower.model.wire import LENGTH, varint

__all__ = [
    "clear_sizes_below_zero",
    "entry",
    "has_whole_shape",
    "is_known",
    "may_be_of_one_shape",
    "rank_of",
    "size_of",
    "sizes",
    "tensor_type",
    "without_made_up_symbols",
]

_ENTRY = varint(GraphProto.VALUE_INFO_FIELD_NUMBER << 3 | LENGTH)
_NAME, _TYPE = 0x0A, 0x12

_MADE_UP = "unk__"


def without_made_up_symbols(value_type: TypeProto) -> TypeProto:
    """The type without symbols that inference invented for unknown sizes; the same object if it has none.

    These symbols are unique per value and carry no information. Neither do sizes below zero, which exporters of other
    frameworks write for unknown ones.
    """
    dims = enumerate(value_type.tensor_type.shape.dim)
    empty = [axis for axis, dim in dims if dim.dim_value < 0 or dim.dim_param.startswith(_MADE_UP)]
    if not empty:
        return value_type
    kept = deepcopy(value_type)
    for axis in empty:
        kept.tensor_type.shape.dim[axis].Clear()
    return kept


def clear_sizes_below_zero(model: ModelProto) -> bool:
    """Take sizes below zero out of what a model states of computed values; whether there were any."""
    dims = [
        dim
        for graph in chain([model.graph], (inner for node in all_nodes(model) for _, _, inner in subgraphs(node)))
        for value in (*graph.output, *graph.value_info)
        for dim in value.type.tensor_type.shape.dim
        if dim.dim_value < 0
    ]
    for dim in dims:
        dim.Clear()
    return bool(dims)


def size_of(dim: TensorShapeProto.Dimension) -> int | None:
    """The size that a dimension states as a number; None if it states none, or one below zero."""
    return dim.dim_value if dim.WhichOneof("value") == "dim_value" and dim.dim_value >= 0 else None


def tensor_type(tensor: TensorProto) -> TypeProto:
    """The type of a tensor: element type and shape."""
    found = TypeProto()
    found.tensor_type.elem_type = tensor.data_type
    shape = found.tensor_type.shape
    shape.SetInParent()  # also for a scalar, whose shape has no dimensions
    for size in tensor.dims:
        shape.dim.add(dim_value=size)
    return found


def entry(name: bytes, value_type: bytes) -> bytes:
    """The bytes of a GraphProto with one value_info entry and nothing else.

    The name is in UTF-8; the type is serialized, without made-up symbols.
    """
    value = b"".join((bytes([_NAME]), varint(len(name)), name, bytes([_TYPE]), varint(len(value_type)), value_type))
    return _ENTRY + varint(len(value)) + value


def has_whole_shape(stated: TypeProto | None) -> bool:
    """Whether a type states a shape all of whose sizes have a number or a name."""
    if stated is None or not stated.tensor_type.HasField("shape"):
        return False
    for dim in stated.tensor_type.shape.dim:
        if size_of(dim) is None and (not dim.dim_param or dim.dim_param.startswith(_MADE_UP)):
            return False
    return True


def is_known(found: TypeProto | None) -> bool:
    """Whether everything but sizes is known."""
    if found is None:
        return False
    kind = found.WhichOneof("value")
    if kind != "tensor_type":
        return kind is not None
    return bool(found.tensor_type.elem_type) and found.tensor_type.HasField("shape")


def sizes(value_type: TypeProto | None) -> list[int | None] | None:
    """The sizes of a tensor, with None for those that are not numbers; None if the rank is not stated."""
    if value_type is None or not value_type.tensor_type.HasField("shape"):
        return None
    return [size_of(dim) for dim in value_type.tensor_type.shape.dim]


def rank_of(value_type: TypeProto | None) -> int | None:
    """The rank of a tensor; None if it is not stated."""
    if value_type is None or not value_type.tensor_type.HasField("shape"):
        return None
    return len(value_type.tensor_type.shape.dim)


def may_be_of_one_shape(left: Sequence[int | None], right: Sequence[int | None]) -> bool:
    """Whether two shapes can be equal, given the sizes that are known."""
    return len(left) == len(right) and all(a == b for a, b in zip(left, right, strict=True) if None not in (a, b))
