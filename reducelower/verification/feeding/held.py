"""The numbers and strings that the two sides of a region hold; inputs near these are tried."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from reducelower.model.constants import tensor_of
from reducelower.model.graph import walk
from reducelower.numerics.measure import Array, exact_numbers
from reducelower.verification.operators import RANDOM, of_kind
from reducelower.verification.regions.pairs import Pair

__all__ = ["FEW", "constants_of", "held_in", "keys_of", "tables_of", "texts_of", "vectors_of"]

FEW = 8
"""A small constant has at most so many numbers; each is tried."""
_COMPUTED = of_kind("any rank", "converting") - RANDOM - {"ConstantOfShape", "Range"}
"""Operators whose results are about as large as their inputs, and the same each time."""
_OF_TABLE = 256  # numbers
_OF_KEYS = 1000
_KEYS = ("cats_", "keys_", "pool_")
_OF_VECTOR = 64
_VECTORS = 4


def held_in(pair: Pair) -> Iterator[Array]:
    """All that the two sides hold: constants, values computed from small constants alone, and attributes of nodes."""
    sides = (pair.nodes, pair.before), (pair.replacement, pair.after)
    for constants, (nodes, place) in zip(pair.constants, sides, strict=True):
        yield from constants.values()
        yield from _computed(nodes, constants, place.opsets.get("", 1))
    for node in walk([*pair.nodes, *pair.replacement]):
        for attribute in node.attribute:
            if attribute.ref_attr_name:
                continue
            if attribute.type in (AttributeProto.FLOAT, AttributeProto.FLOATS):
                yield np.atleast_1d(np.array(helper.get_attribute_value(attribute), np.float64))
            elif attribute.type in (AttributeProto.STRING, AttributeProto.STRINGS):
                yield np.atleast_1d(np.array(helper.get_attribute_value(attribute), object))
            elif attribute.type == AttributeProto.TENSOR and attribute.t.data_location != TensorProto.EXTERNAL:
                yield numpy_helper.to_array(attribute.t)


def _computed(nodes: Iterable[NodeProto], constants: Mapping[str, Array], opset: int) -> Iterator[Array]:
    """The small values that nodes compute from small constants alone."""
    small = {name: value for name, value in constants.items() if value.size <= FEW}
    for node in nodes:
        if node.op_type == "Constant":
            held = tensor_of(node)
            if held is not None and held.data_location != TensorProto.EXTERNAL:
                small[node.output[0]] = numpy_helper.to_array(held)
            continue
        operands = dict.fromkeys(filter(None, node.input))
        if node.domain or node.op_type not in _COMPUTED or not operands or not small.keys() >= operands.keys():
            continue
        outputs = [name for name in node.output if name]
        from reducelower.verification.running.evaluator import Evaluator  # slow to import, and seldom needed

        with suppress(Exception):  # the evaluator raises what numpy raises, and lacks versions
            alone = GraphProto(name="alone", node=[node], output=[ValueInfoProto(name=name) for name in outputs])
            alone.initializer.extend(numpy_helper.from_array(small[name], name) for name in operands)
            model = helper.make_model(alone, opset_imports=[helper.make_opsetid("", opset)])
            computed = zip(outputs, Evaluator(model).run(None, {}), strict=True)
            results = {name: value for name, value in computed if isinstance(value, np.ndarray) and value.size <= FEW}
            small |= results
            yield from results.values()


def texts_of(held: Iterable[Array]) -> tuple[str, ...]:
    """Some of the strings among constants and attributes."""
    texts = (item for value in held for item in exact_numbers(value.ravel()[:_OF_TABLE]).tolist())
    return tuple(dict.fromkeys(texts))[:_OF_TABLE]


def constants_of(held: Sequence[Array]) -> tuple[float, ...]:
    """The smallest numbers among small constants."""
    numbers = dict.fromkeys(float(item) for value in held if value.size <= FEW for item in value.ravel().tolist())
    finite = [value for value in numbers if value == value and abs(value) < 1e300]
    return tuple(sorted(finite, key=abs)[:FEW])


def keys_of(nodes: Iterable[NodeProto]) -> tuple[float, ...]:
    """The keys that operators map to labels, categories or n-grams, and one number that is no key."""
    named = (item for node in nodes for item in node.attribute if item.name.startswith(_KEYS))
    keys = dict.fromkeys(float(number) for item in named for number in (*item.ints, *item.floats))
    return (*list(keys)[:_OF_KEYS], max(keys) + 1) if keys else ()


def vectors_of(held: Sequence[Array]) -> tuple[tuple[int, ...], ...]:
    """Some of the small integer vectors among the constants: a whole input may be compared with one."""
    vectors = [value.ravel().tolist() for value in held if value.dtype.kind in "iu" and 1 < value.size <= _OF_VECTOR]
    return tuple(dict.fromkeys(map(tuple, vectors)))[:_VECTORS]


def tables_of(held: Sequence[Array]) -> tuple[float, ...]:
    """A sample of the numbers in large constants, since the data to compare with them lies near these."""
    samples = [value.ravel()[:: value.size // _OF_TABLE + 1].astype(np.float64) for value in held if value.size > FEW]
    numbers = np.concatenate([*samples, np.zeros(0)])
    return tuple(numbers[np.isfinite(numbers)][:: numbers.size // _OF_TABLE + 1].tolist())
