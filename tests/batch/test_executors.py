"""Many files on any executor, such as threads."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import onnx
import pytest

from reducelower.batch import check_files, convert_files
from reducelower.batch.many import run_all
from reducelower.options import Target


@pytest.fixture
def folder(two_models: Path) -> Path:
    (two_models / "broken.onnx").write_bytes(b"no model")
    return two_models


def opset(path: str) -> int:
    return next(item.version for item in onnx.load(path).opset_import if item.domain == "")


def assert_converted(outcomes: list[Any], root: Path) -> None:
    found = {str(Path(item.source).relative_to(root)): item for item in outcomes}
    assert {name: item.status for name, item in found.items()} == {"broken.onnx": 2, "deep/gmm.onnx": 0, "mean.onnx": 0}
    assert "not an ONNX model" in found["broken.onnx"].problems[0]
    for name in ("deep/gmm.onnx", "mean.onnx"):
        assert opset(found[name].output) == 13
        assert found[name].verification.equivalent


def test_threads(folder: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as executor:
        outcomes = list(convert_files([folder], 13, output_dir=tmp_path / "out", executor=executor))
        assert executor.submit(int, "1").result() == 1  # it is still the caller's
    assert_converted(outcomes, folder)


def test_processes_of_our_own(folder: Path, tmp_path: Path) -> None:
    assert_converted(list(convert_files([folder], Target(13), output_dir=tmp_path / "out", jobs=2)), folder)


def test_outcomes_come_in_the_order_of_the_paths(folder: Path, tmp_path: Path) -> None:
    paths = [folder / "mean.onnx", folder / "deep" / "gmm.onnx"]
    for jobs in (1, 2):
        outcomes = convert_files(paths, 13, output_dir=tmp_path / f"out{jobs}", jobs=jobs, verify=False)
        assert [item.source for item in outcomes] == list(map(str, paths))


def test_checks_run_on_executors_too(folder: Path) -> None:
    with ThreadPoolExecutor(2) as executor:
        found = list(check_files([folder], 13, executor=executor))
    assert [item.status for item in found] == [2, 1, 1]


class _GivesUp(Executor):
    """An executor that does one job and gives up the others."""

    def __init__(self, give_up: Callable[[Future[Any]], object]) -> None:
        self.give_up = give_up
        self.left = 1

    def submit(self, work: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if self.left:
            self.left -= 1
            future.set_result(work(*arguments, **options))
        else:
            self.give_up(future)
        return future


def _lose(future: Future[Any]) -> None:
    future.set_exception(RuntimeError("the worker died"))


def _break(future: Future[Any]) -> None:
    """As an executor of processes does when one of them has died."""
    raise RuntimeError("the pool is broken")


@pytest.mark.parametrize(
    ("give_up", "why"),
    [
        (_lose, "RuntimeError: the worker died"),
        (_break, "RuntimeError: the pool is broken"),
        (Future.cancel, "CancelledError: "),
    ],
)
def test_what_an_executor_gives_up_is_lost_and_nothing_else(give_up: Callable[[Future[Any]], object], why: str) -> None:
    jobs = ["one", "two", "three"]
    found = list(run_all(str, jobs, 1, lambda job, why: f"{job}: {why}", executor=_GivesUp(give_up)))
    assert found == ["one", *(f"{job}: the executor gave up on it ({why})" for job in jobs[1:])]


def test_a_model_that_is_given_up_has_an_outcome(folder: Path, tmp_path: Path) -> None:
    outcomes = list(convert_files([folder], 13, output_dir=tmp_path / "out", executor=_GivesUp(_lose), verify=False))
    assert [item.status for item in outcomes] == [2, 3, 3]


class _OneWorker(Executor):
    """An executor of one worker, which begins when it is asked and loses all that it holds to a job named deadly."""

    def __init__(self) -> None:
        self.held: list[tuple[_Asked, Any, str]] = []

    def submit(self, work: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        self.held.append((_Asked(self), work, arguments[0]))
        return self.held[-1][0]

    def run(self) -> None:
        held, self.held = self.held, []
        is_killed = any(job == "deadly" for _, _, job in held)
        for future, work, job in held:
            if is_killed:
                future.set_exception(RuntimeError("the worker died"))
            else:
                future.set_result(work(job))


class _Asked(Future[Any]):
    def __init__(self, executor: _OneWorker) -> None:
        super().__init__()
        self.executor = executor

    def result(self, timeout: float | None = None) -> Any:
        self.executor.run()
        return super().result(timeout)


def test_a_model_that_kills_its_worker_is_the_only_one_lost() -> None:
    jobs = ["good", "deadly", "fine"]
    assert list(run_all(str, jobs, 1, lambda job, why: "lost", executor=_OneWorker())) == ["good", "lost", "fine"]


def test_two_models_for_one_output_are_refused_before_any_work(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "mean.onnx", folder / "deep" / "mean.onnx")
    with pytest.raises(ValueError, match="both be written"):
        convert_files([folder / "mean.onnx", folder / "deep" / "mean.onnx"], 13, output_dir=tmp_path / "out")
