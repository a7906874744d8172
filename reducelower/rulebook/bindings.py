"""Which element types a rule is for, by its `overload`, and the facts about the element type that its body gets."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from onnx import FunctionProto, TensorProto, defs

from reducelower.errors import RefusedError
from reducelower.model.numbers import whole_range
from reducelower.numerics.formats import FORMATS
from reducelower.rulebook.reading import Source

__all__ = ["ANY", "AXES", "BINDINGS", "CLASSES", "SUPPORTED", "Axes", "Claim", "chosen", "claim_of", "is_stashed"]

ANY = ""
"""The class of a rule for every element type."""

_FLOATING = ("float16", "bfloat16", "float", "double")
_SIGNED = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_NAMES = (*_FLOATING, *_SIGNED, *_UNSIGNED, "bool")


def _types(*names: str) -> frozenset[int]:
    return frozenset(TensorProto.DataType.Value(name.upper()) for name in names)


SUPPORTED = _types(*_NAMES)
"""Element types with a class besides `ANY`: the numbers and bool."""

CLASSES: dict[str, frozenset[int]] = {
    "floating": _types(*_FLOATING),
    "integer": _types(*_SIGNED, *_UNSIGNED),
    "signed": _types(*_SIGNED),
    "unsigned": _types(*_UNSIGNED),
    "byte": _types("int8", "uint8"),
    "narrow": _types("int8", "uint8", "int16", "uint16", "int32", "uint32"),
    **{name: _types(name) for name in _NAMES},
}
"""Element types by class name. A single type is a class of its own, under ONNX's name of it."""


@dataclass(frozen=True)
class Claim:
    """The element types of data that a rule is for (None for all), and those that must be forbidden for it to apply."""

    types: frozenset[int] | None = None
    without: frozenset[int] = frozenset()

    def holds(self, element_type: int | None, forbidden: frozenset[int]) -> bool:
        """Whether the rule is for data of this type (None: unknown) when these types are forbidden."""
        return self.without <= forbidden and (self.types is None or element_type in self.types)

    @property
    def order(self) -> tuple[int, int]:
        """Sort key among the rules of an operator: rules for forbidden types first, then those for the fewest element
        types."""
        return -len(self.without), len(SUPPORTED) + 1 if self.types is None else len(self.types)

    def clashes(self, other: Claim) -> bool:
        """Whether both apply equally to some element type."""
        if self.order != other.order or self.without != other.without:
            return False
        return self.types is None or other.types is None or bool(self.types & other.types)


def claim_of(source: Source) -> Claim:
    """What a function is for, by its overload, such as ``float, double`` or ``float16, bfloat16 without float``.

    Raises:
        RuleError: it names an unknown class of element types.
    """
    try:
        return _claim(source.function.overload)
    except KeyError as error:
        reason = f"unknown class of element types {error} (known: {', '.join(CLASSES)})"
        raise source.error(reason, "overload") from None


@cache
def _claim(overload: str) -> Claim:
    types, _, without = (part.strip() for part in overload.partition(" without "))
    return Claim(_types_of(types) if types else None, _types_of(without) if without else frozenset())


def _types_of(names: str) -> frozenset[int]:
    return frozenset().union(*(CLASSES[name.strip()] for name in names.split(",")))


def _range(element_type: int) -> tuple[int, int] | tuple[float, float]:
    if element_type in FORMATS:
        return -FORMATS[element_type].largest, FORMATS[element_type].largest
    return whole_range(element_type)


BINDINGS: Mapping[str, Mapping[int, int | float]] = {
    "one": dict.fromkeys(SUPPORTED - CLASSES["bool"], 1),
    "two": dict.fromkeys(SUPPORTED - CLASSES["bool"], 2),
    "minus_one": dict.fromkeys((*FORMATS, *CLASSES["signed"]), -1),
    "log_of_two": dict.fromkeys(FORMATS, math.log(2)),
    "lowest": {element_type: _range(element_type)[0] for element_type in SUPPORTED},
    "largest": {element_type: _range(element_type)[1] for element_type in SUPPORTED},
    "smallest_power": {element_type: 2.0**number.lower for element_type, number in FORMATS.items()},
    "largest_power": {element_type: 2.0**number.exponent for element_type, number in FORMATS.items()},
    "summable": {element_type: 2.0**number.summable for element_type, number in FORMATS.items()},
}
"""Value by binding name and element type; the table that `rules/README.md` explains."""

_MOST_DIMENSIONS = 64
"""Axes counted from the back need no rank up to this number, numpy's largest rank; beyond it, the rank is asked for."""


@dataclass(frozen=True)
class Axes:
    """Axes that follow from a node's attributes and the rank of its data, given to a body as ``value_ints``.

    `first` counts from the front; None means that the attribute ``axis`` has it. If `alone`, it is the only axis.
    """

    first: int | None = None
    alone: bool = False

    def fits(self, schema: defs.OpSchema) -> bool:
        """Whether an operator has such axes."""
        return self.first is not None or "axis" in schema.attributes

    def of(self, axis: int, rank: Callable[[], int]) -> list[int]:
        """The axes in order, counted from the back; a single one as it is given."""
        if self.alone:
            return [axis]
        if self.first is None and -_MOST_DIMENSIONS <= axis < 0:
            return list(range(axis, 0))
        first, known_rank = self.first if self.first is not None else axis, rank()
        if not -known_rank <= first < known_rank and self.first is None:
            raise RefusedError(f"its axis {axis} is out of range for rank {known_rank}", "correct the model")
        return list(range(first - known_rank, 0))


AXES = {"trailing_axes": Axes(), "single_axis": Axes(alone=True), "spatial_axes": Axes(first=2)}
"""Axes by binding name: from ``axis`` on, that one alone, or all after batch and channels."""


def is_stashed(function: FunctionProto) -> bool:
    """Whether a function casts its data to the element type that ``stash_type`` names, in which it then computes."""
    casts = (node for node in function.node if node.op_type == "Cast" and node.input[0] == function.input[0])
    return any(attribute.ref_attr_name == "stash_type" for node in casts for attribute in node.attribute)


def chosen(helpers: Sequence[Source], element_type: int | None) -> Source | None:
    """The definition of a helper for an element type: that for the fewest types."""
    claims = ((claim_of(each), each) for each in helpers)
    fitting = [(claim.order, at, each) for at, (claim, each) in enumerate(claims) if claim.holds(element_type, _NONE)]
    return min(fitting)[2] if fitting else None


_NONE = frozenset[int]()
