"""Nodes that both models have, for two versions of their operator: what holds of one holds of all that are like it.

Versions differ in what an operator means, hardly in a number or a size. So constants other than positions and counts
become inputs, and sizes are left open: the quantizers of a model, each with a scale of its own, are one region.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace

from onnx import NodeProto, helper

from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.numerics.measure import Array, identical
from reducelower.verification.operators import column
from reducelower.verification.regions.elementwise import any_size
from reducelower.verification.regions.pairs import FreeInput, Pair

__all__ = ["freed"]


def freed(pair: Pair) -> Pair:
    """The region of one node that is the same on both sides, for any constants and sizes; any other as it is."""
    if len(pair.nodes) != 1 or len(pair.replacement) != 1 or pair.is_reduction:
        return pair
    node, other = pair.nodes[0], pair.replacement[0]
    constants = pair.constants[0]
    if _reshapes_without_zeros(node, constants):
        node, other = _plain(node), _plain(other)
    if node.domain not in DEFAULT_DOMAINS or not node.input or not _is_carried(pair, node, other):
        return pair
    places = column("where").get(node.op_type, frozenset())
    kept = {name for at, name in enumerate(node.input) if at in places and name in constants}
    if _reshapes_without_zeros(node, constants):
        kept = set()  # any other shape does as well
    inputs = list(pair.inputs)
    for name, value in constants.items():
        if name not in kept:
            inputs.append(FreeInput(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
    if not kept:
        # A shape is as long as the result has dimensions, of which the model states how many.
        told = {node.input[at] for at in places if at < len(node.input) and node.input[at] in constants}
        inputs = [item if item.name in told else replace(item, dims=any_size(item.dims)) for item in inputs]
    held = {name: constants[name] for name in kept}
    copied = deepcopy(other)
    copied.input[:] = node.input
    return replace(pair, nodes=[node], replacement=[copied], inputs=inputs, constants=(held, dict(held)))


def _reshapes_without_zeros(node: NodeProto, constants: Mapping[str, Array]) -> bool:
    """Whether a node is a Reshape to a known shape without zeros: versions differ only in what a zero means."""
    shape = constants.get(node.input[1]) if node.op_type == "Reshape" and len(node.input) > 1 else None
    return shape is not None and bool(shape.all())


def _plain(node: NodeProto) -> NodeProto:
    """A Reshape without what it says of zeros."""
    copied = deepcopy(node)
    del copied.attribute[:]
    return copied


def _is_carried(pair: Pair, node: NodeProto, other: NodeProto) -> bool:
    """Whether two nodes have the same operator, attributes and operands."""
    left, right = pair.constants
    return (
        len(node.input) == len(other.input)
        and pair.are_alike(node, other)
        and all(
            (after in right and identical(left[name], right[after])) if name in left else name == after
            for name, after in zip(node.input, other.input, strict=True)
        )
    )
