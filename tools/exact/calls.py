"""Test rules for normalizations against exact arithmetic: shapes, attributes, and values at the limits of each type."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, defs, helper

from reducelower.rulebook.bindings import BINDINGS
from tools.exact.normalizations import exact_normalization
from tools.exact.ulp import distance_in_ulps

__all__ = ["Call", "calls", "errors_of_call"]


def errors_of_call(
    op_type: str, element_type: int, call: Call, output: npt.NDArray[Any]
) -> Iterator[tuple[float, str]]:
    """The error of each element, with a sentence about it; infinite for a wrong shape.

    The error is in ULP of the largest value in the normalized group, or of the bias. For operators that do not
    normalize it is in ULP of the largest input, as for Reduce operators.
    """
    expected = exact_normalization(op_type, call.inputs, call.attributes)
    if output.shape != expected.shape:
        yield math.inf, f"{call}: shape {output.shape}, expected {expected.shape}"
        return
    others = call.inputs[:1] if op_type in _OF_ITS_INPUT else call.inputs[2:]
    results = _rows(expected, by_row=call.by_row)
    bases = [max(map(abs, row)) for row in results.astype(np.float64)]
    for other in others:
        sizes = np.abs(_rows(other.astype(np.float64), by_row=call.by_row and other.ndim > 1)).max(axis=1)
        bases = [max(base, size) for base, size in zip(bases, np.broadcast_to(sizes, len(bases)), strict=True)]
    for given, exact, base in zip(output.astype(np.float64).reshape(results.shape), results, bases, strict=True):
        for number, value in zip(given.tolist(), exact, strict=True):
            error = distance_in_ulps(number, Decimal(value), [float(base)], element_type)
            yield error, f"{call}: {number:.9g} where {float(value):.9g} is right"


_OF_ITS_INPUT = frozenset({"GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "LogSoftmax"})


def _rows(values: npt.NDArray[Any], *, by_row: bool) -> npt.NDArray[Any]:
    return values.reshape(-1, values.shape[-1]) if by_row else values.reshape(1, -1)


Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Call:
    """A call of an operator with all attributes stated; `by_row` if each row of the data is normalized by itself."""

    inputs: tuple[Array, ...]
    attributes: Mapping[str, Any]
    by_row: bool

    def __str__(self) -> str:
        """The call without its values."""
        attributes = "".join(f", {name}={value}" for name, value in self.attributes.items())
        return f"shape {list(self.inputs[0].shape)}{attributes}"


_ATTRIBUTES: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "GroupNormalization": ({"num_groups": 1}, {"num_groups": 2}, {"num_groups": 4, "epsilon": 0.1}),
    "InstanceNormalization": ({}, {"epsilon": 0.1}),
    "LayerNormalization": ({"axis": -1}, {"axis": 1}, {"axis": -2, "epsilon": 0.1}, {"axis": 0, "epsilon": 1e-12}),
    "LogSoftmax": ({"axis": -1}, {"axis": 1}, {"axis": 0}),
    "LpNormalization": ({"axis": -1}, {"axis": 1, "p": 1}, {"axis": 0}),
    "MeanVarianceNormalization": ({"axes": [0, 2]}, {"axes": [-1]}, {"axes": [0, 1, 2]}),
    "RMSNormalization": ({"axis": -1}, {"axis": 1}, {"axis": -2, "epsilon": 0.1}, {"axis": 0, "epsilon": 1e-12}),
    "Softmax": ({"axis": -1}, {"axis": 1}, {"axis": 0}),
    "GlobalLpPool": ({}, {"p": 1}, {"p": 3}),
}
"""The attributes to test each operator with; operators that are not listed have none."""

_SHAPES = ((2, 4, 6), (3, 4, 1), (1, 4, 9))
_LENGTHS: Mapping[int, tuple[int, ...]] = {TensorProto.BFLOAT16: (5,), TensorProto.FLOAT16: (5, 100, 3000)}
"""Lengths of rows; onnx's reference evaluator sums bfloat16 in bfloat16, which limits them."""

_ROWS = 12
"""Number of rows in the long specimens, each of another magnitude."""


def calls(op_type: str, element_type: int) -> Iterator[Call]:
    """All test calls of an operator for an element type, deterministic."""
    kind = helper.tensor_dtype_to_np_dtype(element_type)
    random = np.random.default_rng(2026)
    for attributes in _ATTRIBUTES.get(op_type, ({},)):
        for shape in _SHAPES:
            yield _call(op_type, attributes, random.normal(0.5, 2, shape).astype(kind), random)
    first = {name: value for name, value in _ATTRIBUTES.get(op_type, ({},))[0].items() if name != "axes"}
    for length in _LENGTHS.get(element_type, (5, 100)):
        count = _ROWS if length < 1000 else 2
        data = np.stack([_row(random, number, length, element_type) for number in range(count)])
        along = {"axes": [2]} if op_type == "MeanVarianceNormalization" else {}
        groups = {"num_groups": 2} if op_type == "GroupNormalization" else {}
        rows = data.astype(kind).reshape(-1, 2, length)
        yield _call(op_type, {**first, **along, **groups}, rows, random, by_row=True)


def _row(random: np.random.Generator, number: int, length: int, element_type: int) -> Array:
    """One row: of each magnitude of the type, of equal elements, or of a large mean with a small deviation."""
    largest = float(BINDINGS["largest"][element_type])
    smallest = float(BINDINGS["smallest_power"][element_type])
    if number % 3 == 0:
        exponent = np.linspace(math.log2(smallest), math.log2(largest), _ROWS)[number]
        return np.asarray(2.0**exponent * random.uniform(-1, 1, length))
    if number % 3 == 1:
        return np.full(length, random.choice([0.0, 1.0, -3.0, largest, smallest]))
    mean = 2.0 ** random.integers(2, 9)
    return np.asarray(mean + random.normal(0, 1, length))


def _call(
    op_type: str, attributes: Mapping[str, Any], data: Array, random: np.random.Generator, *, by_row: bool = False
) -> Call:
    schema = defs.get_schema(op_type)
    filled = {
        name: helper.get_attribute_value(attribute.default_value)
        for name, attribute in schema.attributes.items()
        if attribute.default_value.type and name != "stash_type"
    }
    filled.update(attributes)
    if "epsilon" in filled:
        filled["epsilon"] = float(np.float32(filled["epsilon"]))
    vector = data.shape[filled["axis"] % data.ndim :] if "axis" in filled else data.shape[1:2]
    vectors = tuple(random.normal(1, 0.5, vector).astype(data.dtype) for _ in schema.inputs[1:])
    return Call((data, *vectors), filled, by_row)
