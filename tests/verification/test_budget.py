"""The budget is kept, and what was found within it is told.

Time is that of a clock which moves by one second whenever it is looked at.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto

from reducelower import Target, legalize
from reducelower.verification import Regions, Verification, verify_regions
from reducelower.verification.running.clock import Clock
from reducelower.verification.running.conditions import under
from reducelower.verification.running.foreign import ForeignRuntime
from reducelower.verification.running.runtimes import OnnxRuntime
from reducelower.verification.running.source import OutOfTimeError, Source
from reducelower.verification.whole.comparison import Comparison, verdict_on
from reducelower.verification.whole.explanations import explain
from reducelower.verification.whole.runs import SourceRuns
from tests.models import model

from .clocks import Looked

GRAPH = "g (double[1, 1, 3, 4] x) => (double[1, 1, 3, 4] y)"
SOURCE = model(f"{GRAPH} {{ y = Abs (x) }}")
OTHER = model(f"{GRAPH} {{ y = Relu (x) }}")
# onnxruntime has no kernel of doubles for it.
ELSEWHERE = model(f"{GRAPH} {{ a = Abs (x)  y = AveragePool <kernel_shape = [1, 1]> (a) }}")
OTHER_ELSEWHERE = model(f"{GRAPH} {{ y = AveragePool <kernel_shape = [1, 1]> (x) }}")


def within(budget: float | None, after: ModelProto, runtime: str = "onnxruntime") -> tuple[Verification, float]:
    """What both models as a whole gave within so many looks at the clock, and how many there were."""
    clock = Looked(budget)
    return compared(Source(SOURCE), Source(after), runtime, clock, None), clock.gone


def compared(before: Source, after: Source, runtime: str, clock: Clock, regions: Regions | None) -> Verification:
    comparison = Comparison(SourceRuns(before, {}), after, runtime, (), regions)
    with under(clock=clock):
        if comparison.run():
            explain(comparison)
            comparison.finish()
    return verdict_on([comparison], regions)


@pytest.mark.parametrize(
    ("after", "runtime", "verdict", "where"),
    [
        (SOURCE, "onnxruntime", "equivalent", "onnxruntime"),
        (SOURCE, "reference", "equivalent", "reference"),
        (OTHER, "onnxruntime", "different", "onnxruntime"),
        (OTHER, "reference", "different", "reference"),
        (ELSEWHERE, "onnxruntime", "equivalent", "onnxruntime / reference"),
        (OTHER_ELSEWHERE, "onnxruntime", "different", "onnxruntime / reference"),
    ],
)
def test_a_verdict_takes_all_that_it_rests_on(after: ModelProto, runtime: str, verdict: str, where: str) -> None:
    """Until then it is open, whether the time ends with the source, with the result or with a second look.

    Where it ends while more sets of inputs are looked for, those that were found are what it rests on, and are told.
    The last run is not stopped in the reference evaluator.
    """
    unlimited, needed = within(None, after, runtime)
    assert (unlimited.verdict, unlimited.ran, unlimited.runtime) == (verdict, True, where)
    cases = []
    for budget in range(int(needed) + 1):
        found, looks = within(budget, after, runtime)
        assert looks == budget
        allowed = f"The budget of {budget} s allowed 1 set of inputs."
        is_told = allowed in found.notes or budget == needed
        assert found.verdict == "not shown" or (verdict, is_told) == ("equivalent", True)
        assert found.verdict != "not shown" or any(f"the budget of {budget} s" in reason for reason in found.unseen)
        assert found.cases != 1 or allowed in found.notes
        cases.append(found.cases)
    assert cases == sorted(cases)
    assert set(cases) >= {0, 1}
    assert within(needed + 1, after, runtime)[0] == unlimited


def test_a_difference_that_was_not_looked_into_for_want_of_time_is_told_and_decides_nothing() -> None:
    found, _ = within(within(None, OTHER)[1], OTHER)
    assert any("ended before it was clear what explains the difference" in reason for reason in found.unseen)
    assert any("values differ" in reason for reason in found.unseen)


MULTIPLYING = (
    "g (int64 n, float[64, 64] x) => (float[64, 64] y) <bool go = {1}> { y = Loop (n, go, x) <body "
    "= b (int64 i, bool c, float[64, 64] v) => (bool d, float[64, 64] w) "
    "{ d = Identity (c)  t = MatMul (v, v)  w = Tanh (t) }> }"
)


def times(number: int) -> dict[str, np.ndarray]:
    return {"n": np.array(number), "x": np.ones((64, 64), np.float32)}


def test_a_runtime_in_a_process_of_its_own_is_stopped_and_starts_again() -> None:
    session = ForeignRuntime("onnxruntime").load(Source(model(MULTIPLYING)))
    with under(clock=Clock(1.0)), pytest.raises(OutOfTimeError, match="no answer within"):
        session.run(times(10_000_000))
    np.testing.assert_array_equal(session.run(times(0))[0], times(0)["x"])


def test_no_time_left_is_a_limit() -> None:
    with under(clock=Clock(0.0)), pytest.raises(OutOfTimeError):
        OnnxRuntime().load(Source(model(MULTIPLYING))).run(times(100_000))


def test_what_no_time_was_left_to_explain_is_no_difference() -> None:
    """onnxruntime loses digits of the waves, which the rewrite by itself would show, had it been reached."""
    window = ", ".join(["1"] * 100)
    source = model(
        f"g (float[1, 500] x) => (float[1, 11, 51, 2] y) <int64 step = {{40}}, float[100] w = {{{window}}}> "
        "{ y = STFT <onesided = 1> (x, step, w) }",
        opset=17,
    )
    made = legalize(source, Target(13))
    with under(clock=Looked(0.0)):
        regions = verify_regions(source, made.model, made.plan)
    assert not regions.findings
    found = compared(Source(source), Source(made.model), "onnxruntime", Clock(1000.0), regions)
    assert found.verdict == "not shown"
    assert "rounding may explain as much, in parts that were not run" in found.why
