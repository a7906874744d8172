"""Trying a rule out finds what is wrong with it, and nothing where nothing is."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path

import pytest
from onnx import TensorProto

from reducelower.numerics.truth import reduce_floats, reduce_integers
from reducelower.numerics.ulp import distance_in_ulps
from reducelower.rulebook import load_book
from reducelower.rulebook.trial import try_operator

BODY = """<domain: "mine", overload: "{types}", opset_import: ["" : 18]>
{op} <keepdims, noop_with_empty_axes> (data, axes) => (reduced)
{{
{body}
}}
"""
SUM = "ReduceSum <keepdims = @keepdims, noop_with_empty_axes = @noop_with_empty_axes>"


def try_body(folder: Path, op: str, body: str, types: str = "float") -> list[str]:
    (folder / f"{op}.onnxtxt").write_text(BODY.format(op=op, body=body, types=types))
    return [sentence for trial in try_operator(load_book(folder), op) for sentence in trial.wrong]


@pytest.mark.parametrize(
    ("op", "body", "sentence"),
    [
        ("ReduceL1", f"reduced = {SUM} (data, axes)", "of [-1]"),
        ("ReduceL1", "m = Abs (data)\n reduced = ReduceSum (m, axes)", "expected ()"),
        ("ReduceL1", "m = Abs (data)\n reduced = ReduceSum <keepdims = @keepdims> (m, axes)", "expected (2, 3, 4)"),
        ("ReduceL1", f"m = Abs (data)\n reduced = {SUM} (m)", "axes [1]"),
        ("ReduceL1", f"m = Relu (data)\n reduced = {SUM} (m, axes)", "of [-1]"),
        ("ReduceL2", f"s = Mul (data, data)\n t = {SUM} (s, axes)\n reduced = Sqrt (t)", "0.0 of [7.5"),
        ("ReduceLogSumExp", f"e = Exp (data)\n s = {SUM} (e, axes)\n reduced = Log (s)", "inf of [1000]"),
        ("ReduceMean", f"reduced = {SUM} (data, axes)", "ULP"),
        ("ReduceMin", "reduced = ReduceMax <keepdims = @keepdims> (data, axes)", "ULP"),
    ],
)
def test_a_wrong_rule_is_found(tmp_path: Path, op: str, body: str, sentence: str) -> None:
    wrong = try_body(tmp_path, op, body)
    assert any(sentence in found for found in wrong), wrong


def test_a_rule_that_loses_digits_of_a_double_is_found(tmp_path: Path) -> None:
    body = f"m = Abs (data)\n f = Cast <to = 1> (m)\n s = {SUM} (f, axes)\n reduced = CastLike (s, data)"
    assert try_body(tmp_path, "ReduceL1", body, "double")
    assert not try_body(tmp_path, "ReduceL1", body, "float")


def test_a_minimum_by_negation_is_wrong_at_the_smallest_integer(tmp_path: Path) -> None:
    maximum = SUM.replace("ReduceSum", "ReduceMax")
    body = f"n = Neg (data)\n m = {maximum} (n, axes)\n reduced = Neg (m)"
    assert any("-2147483648" in found for found in try_body(tmp_path, "ReduceMin", body, "int32"))
    assert not try_body(tmp_path, "ReduceMin", body, "float")


def test_a_rule_that_does_not_run_is_found(tmp_path: Path) -> None:
    body = (
        f"three = Constant <value = float[3] {{1.0, 1.0, 1.0}}> ()\n m = Mul (data, three)\n reduced = {SUM} (m, axes)"
    )
    assert any("does not run" in found for found in try_body(tmp_path, "ReduceL1", body))


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
