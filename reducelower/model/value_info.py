"""Types that graphs state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from functools import lru_cache
from typing import NamedTuple

from onnx import GraphProto, TensorProto, TypeProto, ValueInfoProto, helper

from reducelower.text import calculated

__all__ = [
    "NOTHING_STATED",
    "StatedType",
    "clear_sizes_below_zero",
    "may_be_of_one_shape",
    "set_sizes",
    "sizes",
    "state",
    "stated_type",
    "tensor_type",
    "without_made_up_symbols",
]

_MADE_UP = "unk__"
"""How the names begin that onnx's inference invents for unknown sizes."""

_PLACEHOLDERS = frozenset({"?", "*", "-1", "None"})
"""What scripts and old converters write in place of a name for every unknown size; such sizes need not be equal."""

_KEPT = 4096
"""The size of the cache of types."""


def without_made_up_symbols(value_type: TypeProto) -> TypeProto:
    """The type without what stands for unknown sizes and is no name of them; the same object if it has none.

    The symbols that inference invents are unique per value and carry no information. Exporters of other frameworks
    write unknown sizes as placeholders or negative numbers, which are removed as well.
    """
    dims = enumerate(value_type.tensor_type.shape.dim)
    empty = [axis for axis, dim in dims if dim.dim_value < 0 or _is_no_name(dim.dim_param)]
    if not empty:
        return value_type
    kept = deepcopy(value_type)
    for axis in empty:
        kept.tensor_type.shape.dim[axis].Clear()
    return kept


def _is_no_name(symbol: str) -> bool:
    return symbol in _PLACEHOLDERS or symbol.startswith(_MADE_UP)


def clear_sizes_below_zero(values: Iterable[ValueInfoProto]) -> bool:
    """Clear negative sizes in stated types, which other frameworks write for unknown ones; return whether any were."""
    dims = [dim for value in values for dim in value.type.tensor_type.shape.dim if dim.dim_value < 0]
    for dim in dims:
        dim.Clear()
    return bool(dims)


def set_sizes(values: Iterable[ValueInfoProto], sizes: Mapping[str, int]) -> None:
    """State numbers in place of the names of sizes, and of calculations with these, in the types of values."""
    for value in values:
        for dim in value.type.tensor_type.shape.dim:
            size = calculated(dim.dim_param, sizes) if dim.dim_param else None
            if size is not None:
                dim.dim_value = size


class StatedType(NamedTuple):
    """The contents of a type.

    Attributes:
        element_type: `TensorProto.DataType`; 0 if it is not stated, or this is not a tensor.
        sizes: numbers, names, and None for unstated ones; None if the rank is not stated.
        container: the type of a sequence or optional value, serialized; empty for a tensor.
        plain: the type without symbols that are no names, serialized.
    """

    element_type: int = 0
    sizes: tuple[int | str | None, ...] | None = None
    container: bytes = b""
    plain: bytes = b""

    @property
    def is_known(self) -> bool:
        """Whether everything but sizes is known."""
        return bool(self.container) or bool(self.element_type and self.sizes is not None)


NOTHING_STATED = StatedType()


def stated_type(value_type: TypeProto | None) -> StatedType:
    """The contents of a type, if there is one. It is cached: thousands of values share few different types."""
    return NOTHING_STATED if value_type is None else _read(value_type.SerializeToString())


@lru_cache(_KEPT)
def _read(serialized: bytes) -> StatedType:
    read = without_made_up_symbols(TypeProto.FromString(serialized))
    plain, tensor = read.SerializeToString(), read.tensor_type
    if read.WhichOneof("value") not in (None, "tensor_type"):
        return StatedType(container=plain, plain=plain)
    if not tensor.HasField("shape"):
        return StatedType(tensor.elem_type, plain=plain)
    sizes = (dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None for dim in tensor.shape.dim)
    return StatedType(tensor.elem_type, tuple(sizes), plain=plain)


def tensor_type(tensor: TensorProto) -> TypeProto:
    """The type of a tensor: element type and shape."""
    return helper.make_tensor_type_proto(tensor.data_type, tensor.dims)


def state(graph: GraphProto, types: Mapping[str, bytes]) -> None:
    """State serialized types of values in value_info."""
    for name, value_type in types.items():
        graph.value_info.add(name=name).type.ParseFromString(value_type)


def sizes(value_type: TypeProto | None) -> tuple[int | None, ...] | None:
    """The sizes of a tensor, with None for those that are not numbers; None if the rank is not stated."""
    stated = stated_type(value_type).sizes
    return None if stated is None else tuple(size if isinstance(size, int) else None for size in stated)


def may_be_of_one_shape(left: Sequence[object], right: Sequence[object]) -> bool:
    """Whether two shapes can be equal; a size that is not a number can equal any."""
    if len(left) != len(right):
        return False
    for one, other in zip(left, right, strict=True):
        if isinstance(one, int) and isinstance(other, int) and one != other:
            return False
    return True
