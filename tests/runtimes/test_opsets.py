"""The opset version for a runtime that reads several."""

from __future__ import annotations

from reducelower import Target
from reducelower.errors import Refusal
from reducelower.plan import Plan
from reducelower.runtimes.opsets import opset_for
from tests.runtimes.toaster import runtime


def test_no_version_is_tried_at_which_an_operator_is_what_it_was_refused_as() -> None:
    """ReduceSum changed at 11 and 13 (its page): from 14 to 19 it is what it is at 13."""
    tried: list[int] = []

    def attempt(target: Target) -> Plan:
        refusals = (Refusal("graph", "sum", "ReduceSum", "it is missing"),)
        return Plan(20, target, refusals=refusals)

    def fits(opset: int) -> bool:
        tried.append(opset)
        return False

    goal = Target(runtime=runtime('operators = ["ReduceSum"]\nis = "absent"\nopsets = "12-21"'))
    assert opset_for(goal, 20, attempt, fits).opset == 20
    assert tried == [12, 11, 10, 9]
