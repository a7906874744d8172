"""Exact results and distances, which rules are held against, beside numbers worked out by hand."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from onnx import TensorProto

from reducelower.numerics.truth import reduce_floats, reduce_integers
from tools.exact.ulp import distance_in_ulps


def test_exact_results_of_floats() -> None:
    assert reduce_floats("ReduceL2", [3.0, 4.0]) == 5
    assert reduce_floats("ReduceSum", [1e300, 1.0, -1e300]) == 1
    assert reduce_floats("ReduceLogSumExp", [-math.inf, 2.5]) == Decimal("2.5")
    assert reduce_floats("ReduceProd", []) == 1
    assert reduce_floats("ReduceMin", []) == Decimal("Infinity")
    assert reduce_floats("ReduceMax", [math.nan]) is None
    assert reduce_floats("ReduceMean", []) is None
    not_a_number = reduce_floats("ReduceSum", [math.inf, -math.inf])
    assert not_a_number is not None
    assert not_a_number.is_nan()


def test_exact_results_of_integers() -> None:
    assert reduce_integers("ReduceMean", [-7, 2], -128, 127) == -2
    assert reduce_integers("ReduceL2", [2, 2], 0, 255) == 2
    assert reduce_integers("ReduceSumSquare", [16], 0, 255) is None
    assert reduce_integers("ReduceLogSum", [0], 0, 255) is None
    assert reduce_integers("ReduceMax", [], -128, 127) == -128


def test_a_distance_is_in_ulps_of_the_larger_of_result_and_largest_input() -> None:
    ulp = 2.0**-23
    assert distance_in_ulps(1 + ulp, Decimal(1), [1.0], TensorProto.FLOAT) == 1
    assert distance_in_ulps(1 + ulp, Decimal(1), [4.0], TensorProto.FLOAT) == 0.25
    assert distance_in_ulps(math.inf, Decimal(1), [1.0], TensorProto.FLOAT) == math.inf
    assert distance_in_ulps(math.inf, Decimal("1e39"), [1.0], TensorProto.FLOAT) == 0
    assert distance_in_ulps(-math.inf, Decimal("1e39"), [1.0], TensorProto.FLOAT) == math.inf
    assert distance_in_ulps(math.nan, Decimal("NaN"), [], TensorProto.FLOAT) == 0
    assert distance_in_ulps(1.0, Decimal("NaN"), [], TensorProto.FLOAT) == math.inf
    assert distance_in_ulps(3e-45, Decimal("1.401298464324817e-45"), [], TensorProto.FLOAT) == pytest.approx(
        1.14, abs=0.01
    )
