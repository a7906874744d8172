"""Facts about the data's element type that a rule can ask for, handed to its body as attributes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from onnx import FunctionProto, TensorProto, defs

from reducelower.errors import RuleError
from reducelower.model.numbers import whole_range
from reducelower.numerics.formats import FORMATS
from reducelower.rulebook.element_types import CLASSES, SUPPORTED

__all__ = ["AXES", "BINDINGS", "Axes", "binding_type"]


def _range(element_type: int) -> tuple[int, int] | tuple[float, float]:
    if element_type in FORMATS:
        return -FORMATS[element_type].largest, FORMATS[element_type].largest
    return whole_range(element_type)


def _values() -> dict[str, dict[int, int | float]]:
    """Binding name -> element type -> value; the table that `rules/README.md` explains."""
    numbers = SUPPORTED - CLASSES["bool"]
    return {
        "one": dict.fromkeys(numbers, 1),
        "two": dict.fromkeys(numbers, 2),
        "minus_one": dict.fromkeys((*FORMATS, *CLASSES["signed"]), -1),
        "log_of_two": dict.fromkeys(FORMATS, math.log(2)),
        "lowest": {element_type: _range(element_type)[0] for element_type in SUPPORTED},
        "largest": {element_type: _range(element_type)[1] for element_type in SUPPORTED},
        "smallest_power": {element_type: 2.0**known.lower for element_type, known in FORMATS.items()},
        "largest_power": {element_type: 2.0**known.exponent for element_type, known in FORMATS.items()},
        "summable": {element_type: 2.0**known.summable for element_type, known in FORMATS.items()},
    }


BINDINGS = _values()


@dataclass(frozen=True)
class Axes:
    """Axes of a node that its attributes and the rank of its data tell, handed to a body as ``value_ints``.

    Attributes:
        first: the first of them, counted from the front; None where the attribute ``axis`` says it.
        alone: whether the first is the only one.
    """

    first: int | None = None
    alone: bool = False

    def fits(self, schema: defs.OpSchema) -> bool:
        """Whether an operator has such axes."""
        return self.first is not None or "axis" in schema.attributes

    def of(self, axis: int, rank: Callable[[], int]) -> list[int]:
        """The axes, from the first to the last, counted from the back; a single one as it is given.

        Raises:
            RuleError: the data has not got the axis.
        """
        if self.alone:
            return [axis]
        if self.first is None and axis < 0:
            return list(range(axis, 0))
        first, known = self.first if self.first is not None else axis, rank()
        if first >= known and self.first is None:
            raise RuleError(f"its axis {axis} is out of range for rank {known}")
        return list(range(first - known, 0))


AXES = {"trailing_axes": Axes(), "single_axis": Axes(alone=True), "spatial_axes": Axes(first=2)}
"""Binding name -> the axes it stands for: those from ``axis`` on, that one alone, those behind batch and channels."""


def binding_type(function: FunctionProto, element_type: int, stash_type: int = TensorProto.FLOAT) -> int:
    """The element type that the bindings of a function have: the data's, or the one that it casts the data to."""
    casts = (node for node in function.node if node.op_type == "Cast" and node.input[0] == function.input[0])
    is_cast = any(attribute.ref_attr_name == "stash_type" for node in casts for attribute in node.attribute)
    return stash_type if is_cast else element_type
