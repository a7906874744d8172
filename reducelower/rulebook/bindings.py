"""Facts about the data's element type that a rule can ask for, handed to its body as attributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnx import AttributeProto, TensorProto, helper

from reducelower.rulebook.element_types import CLASSES, SUPPORTED, type_name
from reducelower.rulebook.errors import RuleError

if TYPE_CHECKING:
    from reducelower.rulebook.book import Rule

__all__ = ["BINDINGS", "bind"]


@dataclass(frozen=True)
class _Format:
    """A binary floating-point format and the magnitudes that a sum of squares is at ease with.

    Attributes:
        precision: significant bits, the hidden one included.
        exponent: exponent of the largest power of two.
        small: exponent of the smallest magnitude whose square, and the squares of numbers a precision below it, are
            still normal numbers; 0 where the format is too narrow for that.
        big: exponent of the largest magnitude of which 2**32 squares can be summed; 0 where there is none.
    """

    precision: int
    exponent: int
    small: int
    big: int

    @property
    def largest(self) -> float:
        """The largest finite number."""
        return (2.0 - 2.0 ** (1 - self.precision)) * 2.0**self.exponent

    @property
    def smallest_normal(self) -> float:
        """The smallest positive number with full precision; IEEE 754 puts it at 2**(1 - exponent)."""
        return 2.0 ** (1 - self.exponent)


_FORMATS: dict[int, _Format] = {
    TensorProto.FLOAT16: _Format(precision=11, exponent=15, small=0, big=0),
    TensorProto.BFLOAT16: _Format(precision=8, exponent=127, small=-40, big=48),
    TensorProto.FLOAT: _Format(precision=24, exponent=127, small=-40, big=48),
    TensorProto.DOUBLE: _Format(precision=53, exponent=1023, small=-450, big=480),
}


def _integer_range(element_type: int) -> tuple[int, int]:
    name = type_name(element_type)
    bits = int(name.removeprefix("u").removeprefix("int"))
    return (0, 2**bits - 1) if name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _range(element_type: int) -> tuple[int, int] | tuple[float, float]:
    if element_type in _FORMATS:
        return -_FORMATS[element_type].largest, _FORMATS[element_type].largest
    return (0, 1) if element_type == TensorProto.BOOL else _integer_range(element_type)


def _values() -> dict[str, dict[int, int | float]]:
    """Binding name -> element type -> value; the table that `rules/README.md` explains."""
    numbers = SUPPORTED - CLASSES["bool"]
    return {
        "one": dict.fromkeys(numbers, 1),
        "lowest": {element_type: _range(element_type)[0] for element_type in SUPPORTED},
        "largest": {element_type: _range(element_type)[1] for element_type in SUPPORTED},
        "smallest_normal": {element_type: known.smallest_normal for element_type, known in _FORMATS.items()},
        "small": {element_type: 2.0**known.small for element_type, known in _FORMATS.items()},
        "big": {element_type: 2.0**known.big for element_type, known in _FORMATS.items()},
    }


BINDINGS = _values()


def bind(rule: Rule, element_type: int | None) -> dict[str, AttributeProto]:
    """The attributes that a rule's body needs from its site, each a scalar tensor of the data's element type.

    Raises:
        RuleError: the element type is not known, or has no such value (an integer has no smallest normal number).
    """
    if not rule.bindings:
        return {}
    if element_type is None:
        raise RuleError(f"{rule.name} needs the element type of its data for {', '.join(rule.bindings)}")
    return {name: _attribute(rule, name, element_type) for name in rule.bindings}


def _attribute(rule: Rule, name: str, element_type: int) -> AttributeProto:
    value = BINDINGS[name].get(element_type)
    if value is None:
        raise RuleError(f"{rule.name} needs {name!r}, which {type_name(element_type)} does not have")
    return helper.make_attribute(name, helper.make_tensor(name, element_type, (), [value]))
