"""Which values are bounded by what computes them, so that a region need not hold for others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from onnx import NodeProto

from reducelower.model.graph import read_by
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.numerics.measure import Array
from reducelower.verification.operators import column, of_kind

__all__ = ["MOVING", "RANDOM", "bounded", "deciding", "moved", "not_negative"]

RANDOM = of_kind("random")
"""What they give is another value each time."""

MOVING = of_kind("moving")
"""What they give has the elements that they are given, in the same number."""

_BOUNDING = of_kind("bounded")
_PASSING = of_kind("passing bounds")
_NOT_NEGATIVE = of_kind("not negative")
_NOT_NEGATIVE_OF = column("not_negative_of")
_BOUNDED_BY_CONSTANTS = column("bounded_by_constants_from")  # the first is of an integer type


def moved(nodes: Sequence[NodeProto], inputs: Iterable[str]) -> set[str]:
    """The values whose elements are those of inputs that may be anything, so that what these take, they take too."""
    found = set(inputs)
    for node in nodes:
        read = node.input[:1] if node.op_type in MOVING else node.input if node.op_type == "SequenceConstruct" else []
        if read and node.domain in DEFAULT_DOMAINS and found.issuperset(read):
            found.add(node.output[0])
    return found


def deciding(nodes: Sequence[NodeProto]) -> set[str]:
    """The values that nodes in graph order compute with, or whose elements get to where some are computed with."""
    found: set[str] = set()
    for node in reversed(nodes):
        is_moved = node.op_type in MOVING and node.domain in DEFAULT_DOMAINS and found.isdisjoint(node.output)
        found.update(node.input[1:] if is_moved else read_by(node))
    return found


def bounded(nodes: Sequence[NodeProto], constants: Iterable[str]) -> set[str]:
    """The values that cannot be everything their element type has, of those that nodes in graph order compute."""
    known = set(constants)
    found = set(known)
    for node in nodes:
        operands = [name for name in node.input if name]
        if node.op_type not in RANDOM and all(name in known for name in operands):
            known.update(node.output)
            found.update(node.output)
        if node.domain not in DEFAULT_DOMAINS:
            continue
        passes = node.op_type in _PASSING and all(name in found for name in operands)
        start = _BOUNDED_BY_CONSTANTS.get(node.op_type)
        scaled = start is not None and all(name in known for name in node.input[start:] if name)
        if node.op_type in _BOUNDING or passes or scaled or _clips(node):
            found.update(name for name in node.output if name)
    return found


def _clips(node: NodeProto) -> bool:
    """Whether a node is a Clip with both of its bounds, which are inputs since opset version 11."""
    bounds = [name for name in node.input[1:] if name] + [
        item for item in node.attribute if item.name in ("max", "min")
    ]
    return node.op_type == "Clip" and len(bounds) == 2


def not_negative(nodes: Sequence[NodeProto], constants: Mapping[str, Array]) -> set[str]:
    """The values that are never below zero, of those that nodes in graph order compute."""
    found = {name for name, value in constants.items() if value.dtype.kind in "iuf" and bool((value >= 0).all())}
    for node in nodes:
        if node.domain not in DEFAULT_DOMAINS:
            continue
        operands = _NOT_NEGATIVE_OF.get(node.op_type)
        passes = operands is not None and found.issuperset(node.input[operands])
        is_square = node.op_type == "Mul" and len(set(node.input)) == 1
        if passes or is_square or node.op_type in _NOT_NEGATIVE:
            found.update(node.output)
    return found
