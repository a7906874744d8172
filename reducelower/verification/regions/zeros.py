"""Where the sign of a zero shows: what reads a value whose zeros a region gives the other sign.

Zeros of either sign are one number, so that a region holds that turns one into the other. What divides by it tells them
apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.verification.regions.align import Claim
from reducelower.verification.regions.cut import Region, cut_region
from reducelower.verification.running.source import CannotRunError

__all__ = ["readings"]

_TELLING: Mapping[str, int] = {"Reciprocal": 0, "Div": 1, "Pow": 0}
"""Operators that give infinities of two signs for the two zeros, with the position of that input."""

_HANDING_ON = frozenset(
    {
        "Add", "Asin", "Asinh", "Atan", "Atanh", "Cast", "Ceil", "Concat", "Div", "Erf", "Expand", "Flatten", "Floor",
        "Gather", "GatherElements", "GatherND", "Identity", "Mul", "Neg", "Pad", "Reshape", "Round", "Sin", "Sinh",
        "Slice", "Softsign", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tan", "Tanh", "Tile", "Transpose", "Unsqueeze",
        "Where",
    }
)  # fmt: skip
"""What they give has zeros of the signs of those that they are given."""


def readings(region: Region) -> Iterator[Region]:
    """The regions that reach from what a region computes, right but for signs of zeros, to what divides by it."""
    level = region.claim.level
    right_names = {number: name for name, number in level.right_numbers.items() if name in level.right.positions}
    found = {name for name, _ in region.claim.pairs}
    opened = {level.left_numbers[name] for name in found if name in level.left_numbers}
    for node in level.left.holder.node:
        if node.domain not in DEFAULT_DOMAINS or found.isdisjoint(node.input):
            continue
        outputs = [name for name in node.output if name in level.left_numbers]
        if node.op_type in _HANDING_ON:
            found.update(outputs)
            opened.update(level.left_numbers[name] for name in outputs)
        place = _TELLING.get(node.op_type, len(node.input))
        if place >= len(node.input) or node.input[place] not in found:
            continue
        pairs = [(name, right_names[number]) for name in outputs if (number := level.left_numbers[name]) in right_names]
        try:
            if pairs:
                yield cut_region(Claim(level, pairs), region.opened | opened)
        except CannotRunError:
            continue
