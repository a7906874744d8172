"""The numbers and strings that the two sides of a region hold; inputs near these are tried."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from onnx import AttributeProto, NodeProto, TensorProto, helper, numpy_helper

from reducelower.model.constants import tensor_of
from reducelower.model.graph import walk
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.numerics.measure import Array, exact_numbers
from reducelower.types.contents import evaluated
from reducelower.verification.regions.pairs import Pair

__all__ = ["FEW", "constants_of", "differing", "held_in", "lists_of", "texts_of"]

FEW = 8
"""A small constant has at most so many numbers; each is tried."""
_OF_LIST = 256
# What operators map to labels, categories or n-grams, and what stands for a missing value, or in place of it.
_KEYS = ("cats_", "imputed_", "keys_", "pool_", "replaced_")
_LISTS = 4
_SORTED = 1 << 16  # elements; weights are larger


def held_in(pair: Pair) -> Iterator[Array]:
    """All that the two sides hold: constants, values computed from small constants alone, and attributes of nodes."""
    for constants, nodes in zip(pair.constants, (pair.nodes, pair.replacement), strict=True):
        yield from constants.values()
        yield from _computed(nodes, constants)
    for node in walk([*pair.nodes, *pair.replacement]):
        for attribute in node.attribute:
            if attribute.ref_attr_name:
                continue
            if attribute.type in (AttributeProto.FLOAT, AttributeProto.FLOATS):
                yield np.atleast_1d(np.array(helper.get_attribute_value(attribute), np.float64))
            elif attribute.type in (AttributeProto.STRING, AttributeProto.STRINGS):
                yield np.atleast_1d(np.array(helper.get_attribute_value(attribute), object))
            elif attribute.type in (AttributeProto.INT, AttributeProto.INTS) and attribute.name.startswith(_KEYS):
                keys = [*attribute.ints] or [attribute.i]
                yield np.array([*keys, max(keys) + 1])  # the last one is no key
            elif attribute.type == AttributeProto.TENSOR and attribute.t.data_location != TensorProto.EXTERNAL:
                yield numpy_helper.to_array(attribute.t)


def _computed(nodes: Iterable[NodeProto], constants: Mapping[str, Array]) -> Iterator[Array]:
    """The small values that nodes compute from small constants alone."""
    small = {name: value for name, value in constants.items() if value.size <= FEW}
    for node in nodes:
        held = tensor_of(node) if node.op_type == "Constant" else None
        value: Array | None = None
        if held is not None and held.data_location != TensorProto.EXTERNAL:
            value = numpy_helper.to_array(held)
        elif node.domain in DEFAULT_DOMAINS and any(node.input) and small.keys() >= set(filter(None, node.input)):
            value = evaluated(node, [small.get(name) for name in node.input])
        if value is not None and value.size <= FEW:
            small[node.output[0]] = value
            yield value


def differing(pair: Pair) -> Iterator[Array]:
    """What one side alone holds, and the keys of what they map to other values, if both have the same operators."""
    nodes = list(walk(pair.nodes)), list(walk(pair.replacement))
    if [node.op_type for node in nodes[0]] != [node.op_type for node in nodes[1]]:
        return
    left, right = (
        np.unique(np.concatenate([np.zeros(0), *(each.ravel() for each in held.values() if _may_be_compared(each))]))
        for held in pair.constants
    )
    yield from (np.setdiff1d(left, right), np.setdiff1d(right, left))
    for one, other in zip(*nodes, strict=True):
        columns = [{item.name: _column(item) for item in node.attribute} for node in (one, other)]
        rows: dict[int, Array] = {}
        for name in columns[0].keys() & columns[1].keys():
            here, there = columns[0][name], columns[1][name]
            if here.shape == there.shape:
                rows[here.size] = rows.get(here.size, np.zeros(here.size, np.bool_)) | (here != there)
        for side in columns:
            yield from (values[rows[values.size]] for values in side.values() if values.size in rows)


def _may_be_compared(value: Array) -> bool:
    return value.dtype.kind in "iuf" and value.size <= _SORTED


def _column(attribute: AttributeProto) -> Array:
    """The entries of an attribute that is a list; none for others."""
    if attribute.type == AttributeProto.TENSOR and attribute.t.data_location != TensorProto.EXTERNAL:
        return numpy_helper.to_array(attribute.t).ravel()
    is_list = attribute.type in (AttributeProto.FLOATS, AttributeProto.INTS, AttributeProto.STRINGS)
    return np.array(helper.get_attribute_value(attribute) if is_list else [])


def texts_of(held: Iterable[Array]) -> tuple[str, ...]:
    """Some of the strings among constants and attributes."""
    texts = (item for value in held for item in exact_numbers(value.ravel()[:_OF_LIST]).tolist())
    return tuple(dict.fromkeys(texts))[:_OF_LIST]


def constants_of(held: Iterable[Array], most: int = FEW) -> tuple[float, ...]:
    """The smallest numbers among small constants."""
    numbers = dict.fromkeys(float(item) for value in held if value.size <= most for item in value.ravel().tolist())
    finite = [value for value in numbers if value == value and abs(value) < 1e300]
    return tuple(sorted(finite, key=abs)[:most])


def lists_of(held: Iterable[Array]) -> list[list[float]]:
    """Some of the numbers in each constant of several, in order: data may be compared with one, or with each."""
    several = (value.ravel() for value in held if value.size > (1 if value.dtype.kind in "iu" else FEW))
    samples = (value[:: value.size // _OF_LIST + 1].astype(np.float64) for value in several)
    finite = dict.fromkeys(tuple(value[np.isfinite(value)].tolist()) for value in samples)
    return list(map(list, finite))[:_LISTS]
