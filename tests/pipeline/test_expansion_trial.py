"""Trying a rule that expands an operator finds what is wrong with it, and nothing where nothing is."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import parser

from reducelower import Target, legalize, verify
from reducelower.pipeline.trials import try_expansion
from reducelower.rulebook import load_book

BODY = """<domain: "mine", overload: "{types}", opset_import: ["" : 18]>
{op} <keepdims, noop_with_empty_axes> (data, axes) => (reduced)
{{
{body}
}}
"""
SUM = "ReduceSum <keepdims = @keepdims, noop_with_empty_axes = @noop_with_empty_axes>"


def try_body(folder: Path, op: str, body: str, types: str = "float") -> list[str]:
    (folder / f"{op}.onnxtxt").write_text(BODY.format(op=op, body=body, types=types))
    return [sentence for trial in try_expansion(load_book(folder), op) for sentence in trial.wrong]


@pytest.mark.parametrize(
    ("op", "body", "sentence"),
    [
        ("ReduceL1", f"reduced = {SUM} (data, axes)", "values differ"),
        ("ReduceL1", "m = Abs (data)\n reduced = ReduceSum (m, axes)", "does not fit the model"),
        ("ReduceL1", "m = Abs (data)\n reduced = ReduceSum <keepdims = @keepdims> (m, axes)", "does not fit the model"),
        ("ReduceL1", f"m = Abs (data)\n reduced = {SUM} (m)", "does not fit the model"),
        ("ReduceL1", f"m = Relu (data)\n reduced = {SUM} (m, axes)", "values differ"),
        ("ReduceLogSumExp", f"e = Exp (data)\n s = {SUM} (e, axes)\n reduced = Log (s)", "inf after"),
        ("ReduceMean", f"reduced = {SUM} (data, axes)", "values differ"),
        ("ReduceMin", "reduced = ReduceMax <keepdims = @keepdims> (data, axes)", ""),
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
    body = f"three = Constant <value_floats = [1.0, 1.0, 1.0]> ()\n m = Mul (data, three)\n reduced = {SUM} (m, axes)"
    assert any("fails where the source runs" in found for found in try_body(tmp_path, "ReduceL1", body))


def test_no_right_rule_is_called_wrong() -> None:
    for trial in try_expansion(load_book("core"), "ReduceL1"):
        assert not trial.wrong, (trial.tried, trial.wrong[0])
        assert " forms on " in trial.outcome


def test_halves_without_elements_end_no_process() -> None:
    """onnxruntime's InstanceNormalization of halves ended it, with no element along an axis."""
    given = parser.parse_model(
        '<ir_version: 10, opset_import: ["": 22]> g (float16[N, C, L] x, float16[C] s, float16[C] b)'
        " => (float16[N, C, L] y) { y = InstanceNormalization (x, s, b) }"
    )
    made = legalize(given, Target(without={"InstanceNormalization"}), rules="stable")
    found = verify(given, made.model, plan=made.plan)
    assert found.sites
    assert found.equivalent, str(found)
