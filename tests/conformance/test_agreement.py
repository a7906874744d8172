"""Targets are compared by what they say of the suite."""

from __future__ import annotations

from dataclasses import replace

from reducelower.runtimes import Ranges, load_runtime
from tests.conformance.made import distilled, reductions
from tools.conformance.agreement import compare

CASES = reductions("ReduceL1", "ReduceSum")


def test_a_target_agrees_with_itself() -> None:
    runtime = load_runtime("openvino")
    found = compare(runtime, runtime, CASES)
    assert (found.missed, found.more) == ((), ())


def test_what_was_distilled_says_of_each_case_what_was_seen() -> None:
    def broken(case: object) -> bool:
        return case.features.keepdims == "unset" and case.opset >= 13  # type: ignore[attr-defined]

    seen = distilled(CASES, broken).runtime
    nothing = replace(seen, facts=())
    found = compare(seen, nothing, CASES)
    assert {case.name for case in found.missed} == {case.name for case in CASES if broken(case)}
    assert compare(nothing, seen, CASES).more == found.missed


def test_a_change_of_a_fact_is_noticed() -> None:
    runtime = load_runtime("openvino")
    at = next(at for at, fact in enumerate(runtime.facts) if "ReduceL1" in fact.operators)
    narrower = replace(runtime.facts[at], opsets=Ranges.parse("14-15"))
    changed = replace(runtime, facts=(*runtime.facts[:at], narrower, *runtime.facts[at + 1 :]))
    assert compare(runtime, changed, CASES).missed
    assert compare(changed, runtime, CASES).more
