"""Right, wrong and refused, and in which way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reducelower.conformance.case import Case
from reducelower.conformance.judging import Verdict, judge
from reducelower.conformance.process import Answer
from tests.conformance.made import reductions


def expecting(value: Any) -> Case:
    return replace(reductions("ReduceSum")[0], expected=(np.asarray(value),))


def given(*values: Any) -> Answer:
    return Answer("outputs", tuple(np.asarray(value) for value in values))


F = np.float32
D = np.float64


@pytest.mark.parametrize(
    ("wanted", "got", "word", "kind"),
    [
        (F([1, 2]), F([1, 2]), "right", ""),
        (F([1, 2]), F([1, 2.00001]), "right", ""),
        (F([1, 2]), F([1, 2.001]), "wrong", "values"),
        (F([1e30]), F([np.inf]), "wrong", "overflow"),
        (F([1e30]), F([np.nan]), "wrong", "overflow"),
        (F([np.inf]), F([np.inf]), "right", ""),
        (F([np.inf]), F([-np.inf]), "wrong", "values"),
        (F([np.inf]), F([3e38]), "wrong", "values"),
        (F([np.nan]), F([np.nan]), "right", ""),
        (F([2e-30]), F([0]), "wrong", "values"),
        (F([2e-30]), F([2e-30]), "right", ""),
        (F([[1, 2]]), F([1, 2]), "wrong", "shape"),
        (F(3), F([3]), "wrong", "shape"),
        (D([1 / 3]), D([1 / 3]), "right", ""),
        (D([1 / 3]), F([1 / 3]).astype(D), "right", ""),
        (D([1 / 3]), F([1 / 3]), "right", ""),
        (np.int64([3]), np.int32([3]), "right", ""),
        (np.int32([3]), F([3.2]), "wrong", "values"),
        (np.int32([3]), np.int32([4]), "wrong", "values"),
        (np.array([True]), np.array([True]), "right", ""),
        (np.array([True]), np.array([2], np.int32), "wrong", "values"),
        (np.float16([100]), np.float16([100.1]), "right", ""),
        (np.float16([100]), np.float16([101]), "wrong", "values"),
        (F([]), F([]), "right", ""),
        (F([1]), np.array(["1"]), "wrong", "values"),
    ],
    ids=str,
)
def test_one_output(wanted: Any, got: Any, word: str, kind: str) -> None:
    verdict = judge(expecting(wanted), given(got))
    assert (verdict.word, verdict.kind) == (word, kind)


def test_the_number_of_outputs_counts() -> None:
    assert judge(expecting(F([1])), given()).kind == "outputs"
    assert judge(expecting(F([1])), given(F([1]), F([1]))).kind == "outputs"


def test_a_wrong_shape_says_whether_the_values_are_right() -> None:
    assert judge(expecting(F([[1], [2]])), given(F([1, 2]))).detail.endswith("the values are right")
    assert judge(expecting(F([[1], [2]])), given(F([1, 3]))).detail == "shape [2], expected [2,1]"


def test_what_changes_from_run_to_run_is_left_out() -> None:
    said = "Error at 0x7f3a11cc in /tmp/tmpab12/model.onnx:\n  bad axes"
    assert judge(expecting(F([1])), Answer("error", text=said)) == Verdict(
        "refused", "error", "Error at 0x… in model.onnx: bad axes"
    )
