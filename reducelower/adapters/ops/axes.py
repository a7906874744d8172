"""Negative axes of Slice and negative indices of OneHot, which the specification made valid at opset 11.

Runtimes take them before, shape inference takes some and refuses others. So axes are counted from the front on the way
down, and so are constant indices; computed ones are carried over as they are: runtimes wrap them at either version.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.registry import Outcome, lowers
from reducelower.errors import RefusedError

__all__ = ["counted_axes", "from_the_front"]


def from_the_front(axis: int, rank: int) -> int:
    """An axis counted from the first dimension."""
    positive = axis + rank if axis < 0 else axis
    if not 0 <= positive < rank:
        raise RefusedError(f"its axis {axis} is out of range for rank {rank}")
    return positive


def counted_axes(op: Writer, axes: str, rank: str, element_type: int = TensorProto.INT64) -> str:
    """Append what counts computed axes from the front, of a rank that is a tensor of one number of their type."""
    below = op.add("Less", axes, op.constant([0], element_type, "zero"), tail="is_negative")
    return op.add("Where", below, op.add("Add", axes, rank, tail="from_the_end"), axes, tail="counted")


@lowers("Slice", 11)
def _lower_slice(op: Writer) -> Outcome:
    """The axes are an input."""
    name = op.input(3)
    if not name:
        return None
    axes: Any = op.scope.constant(name)
    if axes is None:
        element_type = op.scope.needed_element_type(name)
        rank_of = op.constant([op.rank(0)], element_type, "rank")
        op.node.input[3] = counted_axes(op, name, rank_of, element_type)
        return [*op.nodes, op.node]
    if (axes >= 0).all():
        return None
    rank = op.rank(0)
    positive = [from_the_front(axis, rank) for axis in axes.reshape(-1).tolist()]
    op.scope.release(name)
    op.node.input[3] = op.scope.add_constant(np.array(positive, axes.dtype), "_".join(["axes", *map(str, positive)]))
    return None


@lowers("OneHot", 11)
def _lower_one_hot(op: Writer) -> Outcome:
    """Opset 9 says that negative indices are off; runtimes wrap them there, too, so computed ones are carried over."""
    axis = int(op.attribute("axis", -1))
    if axis < -1:
        op.set("axis", from_the_front(axis, op.rank(0) + 1))
    indices: Any = op.constant_input(0)
    depth: Any = op.constant_input(1)
    if indices is None and op.scope.written_as(op.input(0)) == "dynamic" and not op.scope.made_by(op.input(0)):
        # Inference takes a default that callers may override for the value, and objects to indices below zero there.
        op.node.input[0] = op.add("Identity", op.input(0), tail="indices")
        return [*op.nodes, op.node]
    if indices is None or (indices >= 0).all():
        return None
    if depth is None:
        raise RefusedError(
            "it has negative indices and a depth computed at run time; negative indices came with opset 11",
            f"make {op.input(1)!r} a constant",
        )
    size = int(depth.reshape(-1)[0])
    op.scope.release(op.input(0))
    whole = np.trunc(indices)  # indices of floats are cast to int64 first
    inside = np.where(whole < -size, size, whole + size)  # the depth itself is off, too, and inference takes it
    wrapped = np.where(whole < 0, inside, whole)
    op.node.input[0] = op.scope.add_constant(wrapped.astype(indices.dtype), "indices")
    return None
