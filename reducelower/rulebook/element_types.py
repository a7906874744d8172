"""What a rule is for, as its `overload` says: element types, and element types that the target does without."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from onnx import TensorProto

__all__ = ["ANY", "CLASSES", "SUPPORTED", "Claim", "claim_of"]

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


@dataclass(frozen=True)
class Claim:
    """What a rule is for.

    Attributes:
        types: element types of the data; None for every type.
        without: element types that have to be forbidden for the rule to be chosen.
    """

    types: frozenset[int] | None = None
    without: frozenset[int] = frozenset()

    def holds(self, element_type: int | None, forbidden: frozenset[int]) -> bool:
        """Whether it answers for data of this type, None being unknown, where these types are forbidden."""
        return self.without <= forbidden and (self.types is None or element_type in self.types)

    @property
    def order(self) -> tuple[int, int]:
        """Where it stands among the rules for an operator: what is forbidden first, then the fewest element types."""
        return -len(self.without), len(SUPPORTED) + 1 if self.types is None else len(self.types)

    def clashes(self, other: Claim) -> bool:
        """Whether nothing tells which of the two is meant, for some element type."""
        if self.order != other.order or self.without != other.without:
            return False
        return self.types is None or other.types is None or bool(self.types & other.types)


@cache
def claim_of(overload: str) -> Claim:
    """Read an overload, such as ``float, double`` or ``float16, bfloat16 without float``.

    Raises:
        ValueError: it names a class of element types that there is not; the message is that name.
    """
    types, _, without = overload.partition(" without ")
    return Claim(_types_of(types) if types.strip() else None, _types_of(without) if without else frozenset())


def _types_of(names: str) -> frozenset[int]:
    found: frozenset[int] = frozenset()
    for name in (part.strip() for part in names.split(",")):
        if name not in CLASSES:
            raise ValueError(name)
        found |= CLASSES[name]
    return found
