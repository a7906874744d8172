"""Numbers, element types, axes and names of a node as a whole, which guards and bodies ask for by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from onnx import TensorProto

from reducelower.errors import RefusedError
from reducelower.rulebook.asked import Asked

__all__ = ["NUMBERS", "from_the_front", "shared_rank"]


def from_the_front(axis: int, rank: int, room: int = 0) -> int:
    """An axis counted from the front of `rank` dimensions; refused unless it is one of these or of `room` more."""
    positive = axis + rank if axis < 0 else axis
    if not 0 <= positive < rank + room:
        raise RefusedError(f"its axis {axis} is out of range for rank {rank}")
    return positive


def shared_rank(asked: Asked) -> int:
    """The rank that all inputs and outputs share; refused if none is known."""
    ranks = map(asked.scope.rank, filter(None, (*asked.node.input, *asked.node.output)))
    known_rank = next((rank for rank in ranks if rank is not None), None)
    return asked.scope.needed_rank(asked.node.input[0]) if known_rank is None else known_rank


def _quantized_type(asked: Asked) -> int | None:
    """The element type that QuantizeLinear and its variants yield: the stated one, that of the zero point, or uint8."""
    stated = asked.attribute("output_dtype")
    if stated or not asked.operand("y_zero_point"):
        return stated or TensorProto.UINT8
    return asked.scope.element_type(asked.operand("y_zero_point"))


def _alike(asked: Asked) -> bool:
    """Whether all inputs have the same sizes, all known; True for a single input."""
    first, *others = map(asked.scope.shape, asked.node.input)
    return not others or (first is not None and None not in first and all(shape == first for shape in others))


def _widest(asked: Asked, names: Iterable[str]) -> int:
    types = [asked.scope.needed_element_type(name) for name in names if name]
    return TensorProto.DOUBLE if TensorProto.DOUBLE in types else TensorProto.FLOAT


def _comparable(asked: Asked) -> int:
    """The type of the first input; bools are compared as integers."""
    element_type = asked.scope.needed_element_type(asked.node.input[0])
    return TensorProto.INT32 if element_type == TensorProto.BOOL else element_type


def _trailing_axes(asked: Asked) -> list[int]:
    """The axes from ``axis`` on, counted from the back. The rank is asked for only if they are not given like that."""
    axis = asked.attribute("axis")
    if -_MOST_DIMENSIONS <= axis < 0:
        return list(range(axis, 0))
    rank = asked.scope.needed_rank(asked.node.input[0])
    return list(range(from_the_front(axis, rank) - rank, 0))


_MOST_DIMENSIONS = 64
"""numpy's largest rank; axes beyond it are looked at more closely."""


NUMBERS: Mapping[str, Callable[[Asked], Any]] = {
    "alike": _alike,
    "wide": lambda asked: _widest(asked, asked.node.input[:1]),
    "widest": lambda asked: _widest(asked, asked.node.input),
    "wide_result": lambda asked: (
        TensorProto.DOUBLE if asked.attribute("output_datatype") == TensorProto.DOUBLE else TensorProto.FLOAT
    ),
    "comparable": _comparable,
    "trailing_axes": _trailing_axes,
    "single_axis": lambda asked: [asked.attribute("axis")],
    "spatial_axes": lambda asked: list(range(2 - asked.scope.needed_rank(asked.node.input[0]), 0)),
    "target": lambda asked: asked.scope.target_opset,
    "opset": lambda asked: asked.scope.opset,
    "shared_rank": shared_rank,
    "quantized_type": _quantized_type,
    "operator": lambda asked: asked.node.op_type,
    "inputs": lambda asked: max((at + 1 for at, name in enumerate(asked.node.input) if name), default=0),
    "boundary": lambda asked: asked.opset,
    "arity": lambda asked: len(asked.node.input),
    "results": lambda asked: len(asked.node.output),
    "outputs": lambda asked: max((at + 1 for at, name in enumerate(asked.node.output) if name), default=0),
}
"""Names for numbers, types and names of the node as a whole, in guards and in bodies; other names are attributes.

``wide`` is float, or double if the first input is; for ``widest`` any input decides. ``comparable`` is the type of the
first input, but int32 for bools. Axes are those from ``axis`` on, that one alone, or all after batch and channels.
"""
