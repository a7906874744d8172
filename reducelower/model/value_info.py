"""Entries of value_info as bytes: thousands of them are added to a graph at once."""

from __future__ import annotations

from onnx import GraphProto, TypeProto

from reducelower.model.wire import LENGTH, varint

__all__ = ["entry", "stated"]

_ENTRY = varint(GraphProto.VALUE_INFO_FIELD_NUMBER << 3 | LENGTH)
_NAME, _TYPE = 0x0A, 0x12


def stated(value_type: TypeProto) -> bytes:
    """The bytes of a type as a graph is to state it: symbols that inference makes up mean nothing to anybody else."""
    kept = TypeProto()
    kept.CopyFrom(value_type)
    for dim in kept.tensor_type.shape.dim:
        if dim.dim_param.startswith("unk__"):
            dim.Clear()
    return kept.SerializeToString()


def entry(name: bytes, value_type: bytes) -> bytes:
    """The bytes of a GraphProto that states the type of one value and nothing else.

    Args:
        name: name of the value, in UTF-8.
        value_type: its type, from `stated`.
    """
    value = b"".join((bytes([_NAME]), varint(len(name)), name, bytes([_TYPE]), varint(len(value_type)), value_type))
    return _ENTRY + varint(len(value)) + value
