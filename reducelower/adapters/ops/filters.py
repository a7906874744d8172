"""The filters of Resize and GridSample as nodes: what neighbours weigh by how far a place lies beyond the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from reducelower.adapters.builder import Writer

__all__ = ["Number", "clamped", "cubic_weights", "linear_weights"]

Number: TypeAlias = Callable[[float], str]
"""Names a constant, in the element type and rank that the filter is computed in."""


def linear_weights(op: Writer, rest: str, number: Number) -> dict[int, str]:
    """The weights of the element at the first place and of the one after it."""
    return {0: op.add("Sub", number(1.0), rest, tail="weight"), 1: rest}


def cubic_weights(op: Writer, rest: str, a: float, number: Number) -> dict[int, str]:
    """Keys' convolution kernel at the four neighbours; https://ieeexplore.ieee.org/document/1163711."""
    other = op.add("Sub", number(1.0), rest, tail="other")
    far, near = (a, -5 * a, 8 * a, -4 * a), (a + 2, -(a + 3), 0.0, 1.0)
    return {
        -1: _polynomial(op, op.add("Add", rest, number(1.0), tail="distance"), far, number),
        0: _polynomial(op, rest, near, number),
        1: _polynomial(op, other, near, number),
        2: _polynomial(op, op.add("Add", other, number(1.0), tail="distance"), far, number),
    }


def _polynomial(op: Writer, x: str, coefficients: Sequence[float], number: Number) -> str:
    value = op.add("Mul", x, number(coefficients[0]), tail="power")
    for coefficient in coefficients[1:-1]:
        value = op.add("Mul", op.add("Add", value, number(coefficient), tail="sum"), x, tail="power")
    return op.add("Add", value, number(coefficients[-1]), tail="weight")


def clamped(op: Writer, place: str, length: str, number: Number) -> str:
    """The place itself, or the first or last one of an axis of a length where it lies outside."""
    last = op.add("Sub", length, number(1.0), tail="last")
    return op.add("Min", op.add("Max", place, number(0.0), tail="from_first"), last, tail="inside")
