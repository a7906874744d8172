"""Runs keep their results, and go on where they stopped."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from reducelower.conformance.case import Case
from reducelower.conformance.process import Subject, Worker
from reducelower.conformance.running import How, Probed, probe
from tests.conformance.made import fake, reductions

CASES = [case for case in reductions("ReduceMax") if case.opset == 18 and not case.tag]
FEW = CASES[:12]


def ran(function: str, cases: list[Case], how: How) -> Probed:
    with Worker(fake(function), 60) as worker:
        return probe(worker, cases, how)


def test_a_runtime_starts_once_for_all_that_runs_on_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("counted.py").write_text("""with open("starts", "a") as file:
    file.write("one ")
def run(model, inputs):
    return []
""")
    with Worker(Subject.of_function("fake", "counted:run"), 60) as worker:
        probe(worker, CASES[:2])
        probe(worker, CASES[2:4])
    assert Path("starts").read_text() == "one "


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path) -> None:
    whole, part = tmp_path / "whole.jsonl", tmp_path / "part.jsonl"
    ran("right", FEW, How(whole))
    lines = whole.read_bytes().splitlines(keepends=True)
    part.write_bytes(b"".join(lines[:8]) + lines[8][:40])
    steps: list[int] = []
    again = ran("right", FEW, How(part, lambda done, total: steps.append(done)))
    assert steps[0] == 8
    assert len(steps) == len(FEW) - 8 + 1
    assert part.read_bytes() == whole.read_bytes()
    assert {result.version for result in again.results} == {"1.0"}
    assert [result.case for result in again.results] == [case.name for case in FEW]


def test_what_is_kept_is_not_run_again(tmp_path: Path) -> None:
    keep = tmp_path / "kept.jsonl"
    ran("right", CASES, How(keep))
    again = ran("leaving", CASES, How(keep))
    assert {result.word for result in again.results} == {"right", "refused"}
    assert sum(result.word == "refused" for result in again.results) == 3  # uint32, which onnxruntime lacks


@pytest.mark.parametrize(("field", "value"), [("version", "0.9"), ("digest", "00"), ("runtime", "other")])
def test_results_of_something_else_do_not_count(tmp_path: Path, field: str, value: str) -> None:
    keep = tmp_path / "kept.jsonl"
    ran("nothing", FEW, How(keep))
    lines = [json.loads(line) | {field: value} for line in keep.read_text().splitlines()]
    keep.write_text("".join(json.dumps(line) + "\n" for line in lines))
    again = ran("right", FEW, How(keep))
    assert "wrong" not in {result.word for result in again.results}


def test_an_interrupt_does_not_wait_for_what_a_worker_is_at() -> None:
    """It would be ten minutes."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    hanging = next(case for case in CASES if "axes" in case.inputs)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with Worker(fake("hanging_on_fed_axes"), 600) as worker, pytest.raises(KeyboardInterrupt):
            worker.start()
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            probe(worker, [hanging])
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_file_that_is_no_result_is_told(tmp_path: Path) -> None:
    keep = tmp_path / "kept.jsonl"
    keep.write_text('{"case": 1}\n')
    with pytest.raises(ValueError, match=r"kept\.jsonl: line 1 is not a result"):
        ran("right", CASES, How(keep))
