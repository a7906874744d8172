"""Classes of element types that a rule can be for: what a function's `overload` says."""

from __future__ import annotations

from onnx import TensorProto

__all__ = ["ANY", "CLASSES", "SUPPORTED", "class_of_name", "type_name"]

ANY = ""
"""The class of a rule that holds for every element type."""

_FLOATING = ("float16", "bfloat16", "float", "double")
_SIGNED = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_NAMES = (*_FLOATING, *_SIGNED, *_UNSIGNED, "bool")


def _types(*names: str) -> frozenset[int]:
    return frozenset(TensorProto.DataType.Value(name.upper()) for name in names)


SUPPORTED = _types(*_NAMES)
"""Element types that belong to some class besides `ANY`: the numbers and bool."""

CLASSES: dict[str, frozenset[int]] = {
    "floating": _types(*_FLOATING),
    "integer": _types(*_SIGNED, *_UNSIGNED),
    "signed": _types(*_SIGNED),
    "unsigned": _types(*_UNSIGNED),
    "byte": _types("int8", "uint8"),
    "narrow": _types("int8", "uint8", "int16", "uint16", "int32", "uint32"),
    **{name: _types(name) for name in _NAMES},
}
"""Class name -> element types. A single type is a class of its own, under the name that ONNX gives it."""


def class_of_name(name: str) -> frozenset[int] | None:
    """The element types of a class; None for `ANY`, which holds for every type."""
    return None if name == ANY else CLASSES[name]


def type_name(element_type: int) -> str:
    """An element type as ONNX's text syntax writes it: ``float``, ``bfloat16``, ``int64``."""
    name: str = TensorProto.DataType.Name(element_type)
    return name.lower()
