"""Sizes from which on a region does something else, such as the end of a Slice, and which were too large to be fed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import NodeProto

from reducelower.model.graph import walk
from reducelower.numerics.measure import Array
from reducelower.verification.feeding.limits import FED
from reducelower.verification.regions.pairs import Pair
from reducelower.verification.regions.places import Place

__all__ = ["beyond", "largest_free"]

_ENDLESS = 2**31 - 1  # larger than any size: to the end
_OF_SHAPE = frozenset({"Shape", "Size"})
_TELLING = frozenset({"Clip", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min"})


def largest_free(pair: Pair, feeds: Mapping[str, Any]) -> int:
    """The largest size of a set of inputs along what the region leaves free."""
    found = 0
    for item in pair.inputs:
        shape = np.shape(feeds.get(item.name, ()))
        dims = item.dims if item.dims is not None else (None,) * len(shape)
        found = max(found, *(size for size, dim in zip(shape, dims, strict=False) if not isinstance(dim, int)), 0)
    return found


def beyond(pair: Pair, largest: int) -> tuple[list[int], bool]:
    """The sizes that tell, of those that no input had, and whether the two sides hold the same ones.

    Along what a region leaves free, the largest size was fed.
    """
    sides = zip((pair.nodes, pair.replacement), pair.constants, (pair.before, pair.after), strict=True)
    left, right = (
        {size for number in _thresholds(list(walk(nodes)), held, place) if FED < (size := abs(number)) < _ENDLESS}
        for nodes, held, place in sides
    )
    return sorted(size for size in left | right if size > largest), not any(size > largest for size in left ^ right)


def _thresholds(nodes: Sequence[NodeProto], held: Mapping[str, Array], place: Place) -> Iterator[int]:
    sized: set[str] = set()
    for node in nodes:
        if node.op_type in _OF_SHAPE or not sized.isdisjoint(node.input):
            sized.update(node.output)
        if node.op_type in _TELLING and not sized.isdisjoint(node.input):
            yield from _numbers(node.input, held)
        if node.op_type == "Slice" and _cuts_what_is_free(node, held, place):
            yield from (number for item in node.attribute if item.name in ("starts", "ends") for number in item.ints)
            yield from _numbers(_upstream(nodes, node.input[1:3]), held)


def _cuts_what_is_free(node: NodeProto, held: Mapping[str, Array], place: Place) -> bool:
    """Whether a Slice may cut along an axis of unknown size."""
    shape = place.shape(node.input[0])
    if shape is None:
        return True
    said = {item.name: list(item.ints) for item in node.attribute}
    said |= {
        word: held[name].ravel().tolist()
        for word, name in zip(("starts", "ends", "axes"), node.input[1:4], strict=False)
        if name in held
    }
    axes = said.get("axes", range(len(said.get("starts", shape))))
    if len(node.input) > 3 and node.input[3] and "axes" not in said:
        axes = range(len(shape))
    return any(shape[axis] is None for axis in axes if -len(shape) <= axis < len(shape))


def _upstream(nodes: Sequence[NodeProto], names: Iterable[str]) -> set[str]:
    """The values that others are computed from, and these."""
    found = set(names)
    for node in reversed(nodes):
        if not found.isdisjoint(node.output):
            found.update(node.input)
    return found


def _numbers(names: Iterable[str], held: Mapping[str, Array]) -> Iterator[int]:
    for name in names:
        value = held.get(name)
        if value is not None and value.dtype.kind in "iu":
            yield from value.ravel().tolist()
