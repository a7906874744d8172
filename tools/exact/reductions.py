"""Test rules for Reduce operators against exact arithmetic: forms of the call, and values at the limits of each
type."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from reducelower.numerics.truth import Specimen, reduce_floats, reduce_integers
from reducelower.rulebook.bindings import BINDINGS, CLASSES
from tools.exact.ulp import LIMITS, distance_in_ulps, distance_in_units, smallest_subnormal, ulp

__all__ = ["errors_of_specimen", "limit_of", "specimens"]


def _described(specimen: Specimen) -> str:
    """A call without its values."""
    axes = "absent" if specimen.axes is None else list(specimen.axes)
    noop = ", noop_with_empty_axes=1" if specimen.noop else ""
    return f"shape {list(specimen.data.shape)}, axes {axes}, keepdims={int(specimen.keepdims)}{noop}"


def specimens(op_type: str, element_type: int) -> Iterator[Specimen]:
    """All test calls of an operator for an element type, deterministic."""
    kind = helper.tensor_dtype_to_np_dtype(element_type)
    random = np.random.default_rng(2026)
    yield from _forms(lambda shape: _ordinary(random, shape, element_type).astype(kind))
    edges = np.array(_edges(element_type), dtype=kind)
    yield Specimen(edges, noop=True)
    # Two in each order, and one order of each set of three: additions combine two numbers.
    for pool, rows in (
        (edges, itertools.product(range(len(edges)), repeat=1)),
        (edges, itertools.product(range(len(edges)), repeat=2)),
        (edges[::2], itertools.combinations_with_replacement(range(len(edges[::2])), 3)),
    ):
        yield Specimen(pool[np.array(list(rows))], (1,))
    for length in _LENGTHS.get(element_type, (5, 100)):
        yield Specimen(_ordinary(random, (20, length), element_type).astype(kind), (1,), keepdims=False)
    if element_type == TensorProto.FLOAT16:
        # More equal elements than float16 can count.
        yield Specimen(np.full((1, 70000), 0.5, kind), (1,))
    if op_type in _SCALED and element_type in CLASSES["floating"]:
        yield Specimen(_magnitudes(random, element_type).astype(kind), (1,))


_LENGTHS: dict[int, tuple[int, ...]] = {TensorProto.BFLOAT16: (5,), TensorProto.BOOL: (5,)}
"""Lengths of random rows; onnx's reference evaluator sums bfloat16 in bfloat16, which limits them."""

_SCALED = frozenset({"ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"})


def _forms(fill: Any) -> Iterator[Specimen]:
    """Every form of axes, keepdims and noop_with_empty_axes on ordinary values, also rank 0 and empty data."""
    for keepdims, noop in itertools.product((True, False), repeat=2):
        for axes in (None, (), (1,), (-1,), (0, 2), (-3, 1, 2)):
            yield Specimen(fill((2, 3, 4)), axes, keepdims, noop)
        yield Specimen(fill(()), None, keepdims, noop)
        yield Specimen(fill((2, 0, 3)), (1,), keepdims, noop)
        yield Specimen(fill((2, 0, 3)), (0,), keepdims, noop)
        yield Specimen(fill((2, 0, 3)), None, keepdims, noop)


def _ordinary(random: np.random.Generator, shape: tuple[int, ...], element_type: int) -> np.ndarray[Any, Any]:
    if element_type == TensorProto.BOOL:
        return random.integers(0, 2, shape)
    if element_type in CLASSES["floating"]:
        return np.asarray(random.uniform(0.1, 3, shape))
    return random.integers(0 if element_type in CLASSES["unsigned"] else -9, 10, shape)


def _magnitudes(random: np.random.Generator, element_type: int) -> np.ndarray[Any, Any]:
    """Rows of five positive numbers of one magnitude, one row per magnitude of the type."""
    low = math.log2(smallest_subnormal(element_type))
    high = math.log2(float(BINDINGS["largest"][element_type]))
    exponents = np.linspace(low, high - 0.5, 70)[:, None]
    return np.asarray(2.0 ** (exponents + random.uniform(-0.5, 0.5, (70, 5))))


def _edges(element_type: int) -> list[Any]:
    if element_type == TensorProto.BOOL:
        return [False, True]
    largest = BINDINGS["largest"][element_type]
    if element_type in CLASSES["floating"]:
        normal = BINDINGS["smallest_power"][element_type]
        positive = [0.0, 1.0, 0.3, 1000.0, smallest_subnormal(element_type), normal, math.sqrt(largest), largest]
        return [*positive, *(-value for value in positive), math.inf, -math.inf, math.nan]
    positive = [0, 1, 2, 100, math.isqrt(int(largest)), int(largest) // 2, int(largest) - 1, int(largest)]
    lowest = int(BINDINGS["lowest"][element_type])
    return [*positive, *([-1, -7, lowest // 2, lowest + 1, lowest] if lowest else [])]


def errors_of_specimen(
    op_type: str, element_type: int, specimen: Specimen, output: np.ndarray[Any, Any]
) -> Iterator[tuple[float, str]]:
    """The error of each element that is not left open, with a sentence about it; infinite for a wrong shape."""
    shape = specimen.result_shape()
    if output.shape != shape:
        yield math.inf, f"{_described(specimen)}: shape {output.shape}, expected {shape}"
        return
    for values, number in zip(specimen.groups(), _numbers(output), strict=True):
        error = _error(op_type, element_type, values, number)
        if error is not None:
            yield error, f"{_described(specimen)}: {number} of {_short(values)}"


def limit_of(op_type: str, element_type: int) -> float:
    """The allowed error, in ULP of a float or units of an integer."""
    return LIMITS.get(element_type, 0.0 if op_type in _EXACT else 1.0)


def _error(op_type: str, element_type: int, values: Sequence[Any], given: Any) -> float | None:
    """The error of a result; None if specification or rounding leave the result open."""
    lowest, largest = (BINDINGS[name][element_type] for name in ("lowest", "largest"))
    if op_type == "ReduceMean" and element_type not in _WIDENED and not lowest <= _total(values) <= largest:
        return None
    if element_type in LIMITS:
        expected = reduce_floats(op_type, values)
        if expected is None:
            return None
        if op_type == "ReduceLogSum":
            total = _total(values)
            if _cancels(values, total, element_type):
                return None
            # The logarithm of a sum near 1 has the absolute error of the sum's rounding, in any form.
            if expected.is_finite() and abs(expected) < 1:
                values = [*values, float(total)]
        return distance_in_ulps(given, expected, values, element_type)
    exact = reduce_integers(op_type, values, int(lowest), int(largest))
    if exact is None:
        return None
    if op_type in _EXACT:
        return float(abs(given - exact))
    # The double nearest to an integer just below the largest may exceed the type's range.
    return None if float(exact) > largest else distance_in_units(given, exact, values)


_EXACT = frozenset({"ReduceMax", "ReduceMin"})
"""Operators that return one of their inputs, so they are exact for integers of any size."""

_WIDENED = frozenset({TensorProto.FLOAT16, *CLASSES["narrow"]})
"""Element types whose mean is right even if their sum overflows, as in onnxruntime 1.31.1; for others it need not
be."""


def _total(values: Sequence[Any]) -> Fraction:
    """The exact sum; 0 if some value is not finite."""
    return sum(map(Fraction, values), Fraction(0)) if all(map(math.isfinite, values)) else Fraction(0)


def _cancels(values: Sequence[float], total: Fraction, element_type: int) -> bool:
    """Whether a sum is nonzero but within the rounding errors of summation, so that its logarithm is noise."""
    magnitude = sum((abs(Fraction(value)) for value in values if math.isfinite(value)), Fraction(0))
    return 0 < abs(total) <= magnitude * len(values) * Fraction(ulp(1.0, element_type))


def _numbers(output: np.ndarray[Any, Any]) -> list[Any]:
    """A tensor's elements as Python numbers, in row-major order."""
    exact = output.dtype.kind in "iub"
    numbers: list[Any] = (output if exact else output.astype(np.float64)).ravel().tolist()
    return numbers


def _short(values: Sequence[Any]) -> str:
    shown = ", ".join(f"{value:.9g}" if isinstance(value, float) else str(value) for value in values[:4])
    return f"[{shown}{', ...' if len(values) > 4 else ''}]"
