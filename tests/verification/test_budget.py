"""The budget is kept, and what was found within it is told.

Time is that of a clock which every run of a model moves by one second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from reducelower.verification import RUNTIMES, verify
from reducelower.verification.running import clock as clock_module
from reducelower.verification.running.foreign import ForeignRuntime
from reducelower.verification.running.runtimes import OnnxRuntime, ReferenceRuntime, Runtime, Session
from reducelower.verification.running.source import CannotRunError, OutOfTimeError, Source
from reducelower.verification.whole import verify as whole_module

from .models import model

CASES = 2  # sets of inputs, of which each run takes a second
LOOKS = 1  # runs of a second look: the same again once
SUM = model("g (float[3, 4] x) => (float[3, 1] y) { y = ReduceSum <axes = [1]> (x) }", 11)
MAX = model("g (float[3, 4] x) => (float[3, 1] y) { y = ReduceMax <axes = [1]> (x) }", 11)
NEWER_MAX = model("g (float[3, 4] x) => (float[3, 1] y) { y = ReduceMax <axes = [1]> (x) }", 13)


@dataclass
class Seconds:
    """Seconds gone by, which is how many runs there were, and what was loaded meanwhile."""

    gone: int = 0
    loaded: list[str] = field(default_factory=list)


@dataclass
class SlowSession:
    session: Session
    seconds: Seconds
    can_be_stopped: bool

    def run(self, feeds: Mapping[str, Any], timeout: float | None = None) -> list[Any]:
        self.seconds.gone += 1
        if self.can_be_stopped and timeout is not None and timeout < 1:
            raise OutOfTimeError("it did not finish")
        return self.session.run(feeds)


@dataclass
class SlowRuntime:
    """A runtime in which every run takes a second; onnxruntime, which can be stopped, is made to lack opset 13."""

    runtime: Runtime
    seconds: Seconds

    @property
    def name(self) -> str:
        return self.runtime.name

    def load(self, source: Source) -> Session:
        if self.name == "onnxruntime" and source.proto.opset_import[0].version == 13:
            raise CannotRunError("it lacks opset 13", unsupported=True)
        self.seconds.loaded.append(self.name)
        return SlowSession(self.runtime.load(source), self.seconds, self.name == "onnxruntime")


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> Seconds:
    found = Seconds()
    for runtime in (OnnxRuntime(), ReferenceRuntime()):
        monkeypatch.setitem(RUNTIMES, runtime.name, lambda runtime=runtime: SlowRuntime(runtime, found))  # type: ignore[arg-type]
    monkeypatch.setattr(whole_module, "verify_rewrites", lambda *models, **options: None)
    monkeypatch.setattr(clock_module, "time", SimpleNamespace(monotonic=lambda: found.gone))
    return found


@pytest.mark.parametrize("runtime", ["onnxruntime", "reference"])
def test_a_result_is_judged_by_the_runs_that_the_budget_allowed(seconds: Seconds, runtime: str) -> None:
    found = verify(SUM, SUM, runtimes=(runtime,), budget=CASES + 1.5)
    assert (found.verdict, found.ran) == ("not shown" if runtime == "onnxruntime" else "equivalent", True)
    assert seconds.gone == CASES + 2
    runs = 1 if runtime == "onnxruntime" else 2  # the evaluator is not stopped within a run
    assert found.cases == runs
    assert ("The budget of 3.5 s allowed 1 set of inputs." in found.notes) == (runs == 1)


def test_a_difference_that_was_not_looked_into_for_want_of_time_is_told_and_decides_nothing(seconds: Seconds) -> None:
    found = verify(SUM, MAX, budget=CASES + 1.5)
    assert (found.verdict, found.cases) == ("not shown", 1)
    assert any("ended before it was clear what explains the difference" in reason for reason in found.unseen)
    assert any("values differ" in reason for reason in found.unseen)


def test_a_budget_for_the_source_alone_leaves_the_verdict_open(seconds: Seconds) -> None:
    found = verify(SUM, MAX, budget=CASES)
    assert (found.verdict, found.ran, seconds.gone) == ("not shown", False, CASES)
    assert "budget" in found.reason


@pytest.mark.parametrize("runs", range(2 * CASES + 1, 2 * CASES + LOOKS + 2))
@pytest.mark.parametrize("after", [MAX, NEWER_MAX], ids=["same runtime", "other runtime"])
def test_second_looks_end_with_the_budget(seconds: Seconds, after: ModelProto, runs: int) -> None:
    """The source again: it may draw numbers."""
    unlimited = verify(SUM, after)
    needed, seconds.gone = seconds.gone, 0
    assert needed == 2 * CASES + LOOKS
    found = verify(SUM, after, budget=runs - 0.5)
    assert seconds.gone == min(runs, needed)
    assert found.verdict == ("not shown" if runs <= needed else "different")
    assert (found.outputs == unlimited.outputs) == (runs > needed)


@pytest.mark.parametrize("after", [SUM, MAX, NEWER_MAX], ids=["equal", "different", "other runtime"])
def test_a_budget_that_lasts_changes_nothing(seconds: Seconds, after: ModelProto) -> None:
    assert verify(SUM, after, budget=1000) == verify(SUM, after)


MULTIPLYING = (
    "g (int64 n, float[64, 64] x) => (float[64, 64] y) <bool go = {1}> { y = Loop (n, go, x) <body "
    "= b (int64 i, bool c, float[64, 64] v) => (bool d, float[64, 64] w) "
    "{ d = Identity (c)  t = MatMul (v, v)  w = Tanh (t) }> }"
)


def times(number: int) -> dict[str, np.ndarray]:
    return {"n": np.array(number), "x": np.ones((64, 64), np.float32)}


def test_a_runtime_in_a_process_of_its_own_is_stopped_and_starts_again() -> None:
    session = ForeignRuntime("onnxruntime").load(Source(model(MULTIPLYING)))
    with pytest.raises(OutOfTimeError, match="no answer within 1 s") as caught:
        session.run(times(10_000_000), 1.0)
    assert caught.value.unsupported
    np.testing.assert_array_equal(session.run(times(0), 60.0)[0], times(0)["x"])


def test_no_time_left_is_a_limit() -> None:
    with pytest.raises(OutOfTimeError):
        OnnxRuntime().load(Source(model(MULTIPLYING))).run(times(100_000), 0.0)
