"""The report of a probe."""

from __future__ import annotations

import pytest

from reducelower.conformance.case import Case
from reducelower.conformance.distilling import distil
from reducelower.conformance.judging import Verdict
from reducelower.conformance.running import Probed
from reducelower.conformance.told import as_text
from tests.conformance.made import DAY, RIGHT, probed, reductions

SAID = 'ValueError: <b>no</b> & "none" \x1b[31m'


def verdict(case: Case) -> Verdict:
    if case.features.axes == "dynamic":
        return Verdict("refused", "error", SAID)
    if case.tag == "empty":
        return Verdict("wrong", "values", "0, expected 1")
    return RIGHT


@pytest.fixture(scope="module")
def results() -> Probed:
    return probed(reductions("ReduceProd", "ReduceSum", "Cast"), verdict)


def test_text_has_the_counts_the_facts_and_what_is_left(results: Probed) -> None:
    text = as_text(results, distil(results, DAY))
    assert f"fake 1.0: {len(results.cases)} cases" in text
    assert "ReduceProd and ReduceSum (axes dynamic) are refused" in text
    assert "ReduceProd-18 float[2,0,3]" in text
    assert "\x1b" not in text
