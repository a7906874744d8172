"""Runs keep their results, go on where they stopped, and come out the same however many workers there are."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from reducelower.conformance.case import Case
from reducelower.conformance.process import Subject
from reducelower.conformance.running import How, Probed, Workers, probe
from tests.conformance.made import fake, reductions

CASES = [case for case in reductions("ReduceMax") if case.opset == 18 and not case.tag]
FEW = CASES[:12]


def ran(function: str, cases: list[Case], how: How, jobs: int = 1) -> Probed:
    with Workers(fake(function), jobs=jobs) as workers:
        return probe(workers, cases, how)


def test_results_come_in_the_order_of_the_cases_however_many_workers(tmp_path: Path) -> None:
    files = [tmp_path / f"{jobs}.jsonl" for jobs in (1, 3)]
    one, other = (ran("right", FEW, How(file), jobs) for jobs, file in zip((1, 3), files, strict=True))
    assert [result.case for result in one.results] == [case.name for case in FEW]
    assert one == other
    assert files[0].read_text() == files[1].read_text()
    assert {result.version for result in one.results} == {"1.0"}


def test_a_runtime_starts_once_for_all_that_runs_on_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("counted.py").write_text("""with open("starts", "a") as file:
    file.write("one ")
def run(model, inputs):
    return []
""")
    with Workers(Subject.of_function("fake", "counted:run")) as workers:
        probe(workers, CASES[:2])
        probe(workers, CASES[2:4])
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


def test_an_interrupt_does_not_wait_for_what_workers_are_at() -> None:
    """One of two workers hangs for ten minutes when the other's first result is there."""

    def interrupted(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    hanging = [case for case in CASES if "axes" in case.inputs]
    others = [case for case in CASES if "axes" not in case.inputs]
    cases = [*others[:1], *hanging[:1]]
    with Workers(fake("hanging_on_fed_axes"), 600, 2) as workers, pytest.raises(KeyboardInterrupt):
        probe(workers, cases, How(advance=interrupted))
    assert threading.active_count() == 1 or not any("ThreadPool" in each.name for each in threading.enumerate())


def test_a_file_that_is_no_result_is_told(tmp_path: Path) -> None:
    keep = tmp_path / "kept.jsonl"
    keep.write_text('{"case": 1}\n')
    with pytest.raises(ValueError, match=r"kept\.jsonl: line 1 is not a result"):
        ran("right", CASES, How(keep))
