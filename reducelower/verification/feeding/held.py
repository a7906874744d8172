"""The numbers and strings that either side of a region holds, which values are tried beside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from reducelower.model.graph import walk
from reducelower.numerics.measure import Array, exact_numbers
from reducelower.scope.values import held_by
from reducelower.verification.operators import RANDOM, of_kind
from reducelower.verification.regions.pairs import Pair

__all__ = ["FEW", "constants_of", "held_in", "keys_of", "tables_of", "texts_of", "vectors_of"]

FEW = 8
"""How many numbers a small constant has at most, each of which is tried."""
_COMPUTED = of_kind("any rank", "converting") - RANDOM - {"ConstantOfShape", "Range"}
"""What gives about as many values as it is given, the same each time."""
_OF_TABLE = 256  # numbers
_OF_KEYS = 1000
_KEYS = ("cats_", "keys_", "pool_")
_OF_VECTOR = 64
_VECTORS = 4


def held_in(pair: Pair) -> Iterator[Array]:
    """What either side holds: constants, what it computes from small ones alone, and numeric attributes of nodes."""
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
    known = {name: value for name, value in constants.items() if value.size <= FEW}
    for node in nodes:
        if node.op_type == "Constant":
            held = held_by(node)
            if held is not None and held.data_location != TensorProto.EXTERNAL:
                known[node.output[0]] = numpy_helper.to_array(held)
            continue
        given = {name: known[name] for name in node.input if name in known}
        if node.domain or node.op_type not in _COMPUTED or not given or not known.keys() >= {*filter(None, node.input)}:
            continue
        outputs = [name for name in node.output if name]
        from reducelower.verification.running.evaluator import Evaluator  # slow to import, and seldom needed

        with suppress(Exception):  # the evaluator raises what numpy raises, and lacks versions
            alone = GraphProto(name="alone", node=[node], output=[ValueInfoProto(name=name) for name in outputs])
            alone.initializer.extend(numpy_helper.from_array(value, name) for name, value in given.items())
            model = helper.make_model(alone, opset_imports=[helper.make_opsetid("", opset)])
            results = Evaluator(model).run(None, {})
            found = {name: value for name, value in zip(outputs, results, strict=True) if isinstance(value, np.ndarray)}
            known.update((name, value) for name, value in found.items() if value.size <= FEW)
            yield from (value for value in found.values() if value.size <= FEW)


def texts_of(held: Iterable[Array]) -> tuple[str, ...]:
    """Some of the strings among constants and attributes."""
    found = (item for value in held for item in exact_numbers(value.ravel()[:_OF_TABLE]).tolist())
    return tuple(dict.fromkeys(found))[:_OF_TABLE]


def constants_of(held: Sequence[Array]) -> tuple[float, ...]:
    """The smallest numbers among small constants."""
    found = dict.fromkeys(float(item) for value in held if value.size <= FEW for item in value.ravel().tolist())
    finite = [value for value in found if value == value and abs(value) < 1e300]
    return tuple(sorted(finite, key=abs)[:FEW])


def keys_of(nodes: Iterable[NodeProto]) -> tuple[float, ...]:
    """The numbers that operators map to others, and one that is none of them: of labels, categories and n-grams."""
    named = (item for node in nodes for item in node.attribute if item.name.startswith(_KEYS))
    found = dict.fromkeys(float(number) for item in named for number in (*item.ints, *item.floats))
    return (*list(found)[:_OF_KEYS], max(found) + 1) if found else ()


def vectors_of(held: Sequence[Array]) -> tuple[tuple[int, ...], ...]:
    """Some of the small constants of several integers, which a whole input may be compared with."""
    found = [value.ravel().tolist() for value in held if value.dtype.kind in "iu" and 1 < value.size <= _OF_VECTOR]
    return tuple(dict.fromkeys(map(tuple, found)))[:_VECTORS]


def tables_of(held: Sequence[Array]) -> tuple[float, ...]:
    """Some of the numbers in large constants, which say where the data lies that they are about."""
    found = [value.ravel()[:: value.size // _OF_TABLE + 1].astype(np.float64) for value in held if value.size > FEW]
    drawn = np.concatenate([*found, np.zeros(0)])
    return tuple(drawn[np.isfinite(drawn)][:: drawn.size // _OF_TABLE + 1].tolist())
