"""Where a form may be: the nodes after a reduction, and how the operator would reduce."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
from onnx import NodeProto, helper

from reducelower.errors import RefusedError
from reducelower.model.attributes import attribute_of, value_of
from reducelower.recompose.forms import Manner
from reducelower.recompose.matching import Surroundings, constant_axes
from reducelower.scope.graph import GraphScope

__all__ = ["manner_of", "nodes_after", "with_count"]

_MOST = 64
"""Nodes after one reduction that may be the last of a form."""


def nodes_after(reduction: int, surroundings: Surroundings, farthest: int) -> list[int]:
    """Positions of a reduction and of the nodes that read what comes of it, nearest first.

    Args:
        reduction: its position.
        surroundings: who reads what.
        farthest: how many nodes further on to look.
    """
    found = {reduction: None}
    border = [reduction]
    for _ in range(farthest):
        names = [name for index in border for name in surroundings.nodes[index].output]
        readers = {index for name in names for index in surroundings.readers.get(name, ())}
        border = sorted(index for index in readers - found.keys() if len(surroundings.nodes[index].output) == 1)
        found.update(dict.fromkeys(border))
        if not border or len(found) > _MOST:
            break
    return [index for index in list(found)[:_MOST] if len(surroundings.nodes[index].output) == 1]


def manner_of(node: NodeProto, scope: GraphScope, element_type: int) -> Manner | None:
    """How a Reduce node reduces; None where that is not known here."""
    try:
        keepdims, noop = value_of(node, "keepdims", 1), value_of(node, "noop_with_empty_axes", 0)
        attribute = attribute_of(node, "axes")
        if attribute is not None:
            axes = value_of(node, "axes")
            return Manner(scope.opset, element_type, keepdims, noop, bool(axes), tuple(axes) or None)
        if len(node.input) > 1 and node.input[1]:
            axes = constant_axes(node.input[1], scope)
            manner = Manner(scope.opset, element_type, keepdims, noop, True, axes)
            # A composite whose axes are an attribute says by leaving them out that it reduces everything.
            return manner if axes != () or manner.takes_axes_as_input else replace(manner, has_axes=False, axes=None)
    except RefusedError:
        return None
    return Manner(scope.opset, element_type, keepdims, noop, False)


def with_count(manner: Manner, node: NodeProto, scope: GraphScope) -> Manner | None:
    """The manner with the number of elements that one output is made of; None where the shape does not tell it."""
    shape = scope.shape(node.input[0])
    if shape is None or (manner.has_axes and manner.axes is None):
        return None
    axes = manner.axes if manner.axes else range(len(shape))
    if any(not -len(shape) <= axis < len(shape) for axis in axes):
        return None
    sizes = [shape[axis] for axis in axes]
    if not all(sizes):
        return None
    count = prod(size for size in sizes if size is not None)
    exact = np.array(count).astype(helper.tensor_dtype_to_np_dtype(manner.element_type))
    return replace(manner, count=count) if float(exact) == count else None
