"""Types that sizes are cast to and that do not hold every size that there may be."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from onnx import NodeProto, helper

from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.numerics.measure import is_float, lowest_and_highest, smallest_and_eps
from reducelower.verification.regions.bounded import MOVING

__all__ = ["sizes_held_in"]

# What they give are sizes, or computed from them, where the first of their inputs is; or, of these, any input.
_OF_FIRST = MOVING | {"Cast", "Ceil", "Floor", "Gather", "ReduceProd", "ReduceSum", "Round", "Slice", "Split", "Sqrt"}
_OF_ANY = frozenset({"Add", "Concat", "Div", "Max", "Min", "Mul", "Sub", "Where"})


def sizes_held_in(nodes: Iterable[NodeProto]) -> set[int]:
    """The largest whole numbers up to which each type holds all, of those that nodes in graph order cast sizes to."""
    sized: set[str] = set()
    found: set[int] = set()
    for node in nodes:
        if node.domain not in DEFAULT_DOMAINS or not node.output:
            continue
        read = node.input[:1] if node.op_type in _OF_FIRST else node.input if node.op_type in _OF_ANY else ()
        is_sized = not sized.isdisjoint(read)
        if is_sized or node.op_type in ("Shape", "Size"):
            sized.update(node.output)
        if is_sized and node.op_type == "Cast":
            found.update(_holds(item.i) for item in node.attribute if item.name == "to")
    return found - {0}


def _holds(element_type: int) -> int:
    """Up to which whole number a type holds all; 0 for types that are no numbers."""
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(element_type))
    if is_float(np.zeros(0, dtype)):
        return round(2 / smallest_and_eps(dtype)[1])
    return lowest_and_highest(dtype)[1] if dtype.kind in "iu" else 0
