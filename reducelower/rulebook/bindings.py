"""Which element types a rule is for, by its `overload`, and the facts about the element type that its body gets."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from onnx import FunctionProto, TensorProto, helper, numpy_helper

from reducelower.errors import RefusedError
from reducelower.model.numbers import FLOATS, Array
from reducelower.model.schemas import element_type_name
from reducelower.rulebook.reading import Source

__all__ = [
    "ANY", "BINDINGS", "CLASSES", "SUPPORTED", "Claim", "bound", "chosen", "claim_of", "is_stashed", "largest_finite",
    "of_nothing", "whole_range",
]  # fmt: skip

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


def largest_finite(element_type: int) -> float:
    """The largest finite number of a float type (`TensorProto.DataType`)."""
    info: Any = ml_dtypes.finfo(helper.tensor_dtype_to_np_dtype(element_type))  # type: ignore[no-untyped-call]
    return float(info.max)


def whole_range(element_type: int) -> tuple[int, int]:
    """The smallest and largest value of an integer type; for bool, 0 and 1."""
    dtype = helper.tensor_dtype_to_np_dtype(element_type)
    if dtype.kind == "b":
        return 0, 1
    info: Any = ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
    return int(info.min), int(info.max)


def _range(element_type: int) -> tuple[int, int] | tuple[float, float]:
    if element_type in FLOATS:
        return -largest_finite(element_type), largest_finite(element_type)
    return whole_range(element_type)


def _powers(*exponents: int) -> Mapping[int, float]:
    """Powers of two for float, double, float16 and bfloat16."""
    return {element_type: 2.0**exponent for element_type, exponent in zip(FLOATS, exponents, strict=True)}


BINDINGS: Mapping[str, Mapping[int, int | float]] = {
    "one": dict.fromkeys(SUPPORTED - CLASSES["bool"], 1),
    "two": dict.fromkeys(SUPPORTED - CLASSES["bool"], 2),
    "minus_one": dict.fromkeys((*FLOATS, *CLASSES["signed"]), -1),
    "log_of_two": dict.fromkeys(FLOATS, math.log(2)),
    "lowest": {element_type: _range(element_type)[0] for element_type in SUPPORTED},
    "largest": {element_type: _range(element_type)[1] for element_type in SUPPORTED},
    # So far above the smallest normal number that half of it is not flushed to zero, and so near that the square of the
    # rest is representable.
    "smallest_power": _powers(-120, -1000, -12, -120),
    "largest_power": _powers(127, 1023, 15, 127),
    # 2**32 of it can be summed; 1 if the type is too narrow for that.
    "summable": _powers(64, 512, 0, 64),
}
"""Value by binding name and element type; the table that `rules/README.md` explains."""


def bound(name: str, element_type: int) -> Array:
    """The value of a binding for an element type; also the ends of narrow floats, which only IsInf takes.

    Raises:
        RefusedError: the element type has no such number.
    """
    if element_type in BINDINGS[name]:
        return numpy_helper.to_array(helper.make_tensor(name, element_type, (), [BINDINGS[name][element_type]]))
    if name not in ("lowest", "largest"):
        reason = f"its rule takes {name!r}, which {element_type_name(element_type)} does not have"
        raise RefusedError(reason, "narrow the overload of the rule")
    largest = largest_finite(element_type)
    return np.array(largest if name == "largest" else -largest, helper.tensor_dtype_to_np_dtype(element_type))


_Number: TypeAlias = "int | float"

_OF_NOTHING: Mapping[str, Callable[[_Number, _Number], _Number]] = {
    "CumProd": lambda _, __: 1,
    "CumSum": lambda _, __: 0,
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceSum", "ReduceSumSquare"), lambda _, __: 0),
    **dict.fromkeys(("ReduceLogSum", "ReduceLogSumExp", "ReduceMax"), lambda least, _: least),
    "ReduceMin": lambda _, greatest: greatest,
    "ReduceProd": lambda _, __: 1,
}
"""The result for no elements, by the ends of the type: the specification's table of neutral elements of reductions."""


def of_nothing(op_type: str, element_type: int) -> Array:
    """The result of a reduction of no elements."""
    ends = (-math.inf, math.inf) if element_type in FLOATS else whole_range(element_type)
    return np.array(_OF_NOTHING[op_type](*ends), helper.tensor_dtype_to_np_dtype(element_type))


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
