"""Many files on any executor, such as threads; `test_cluster` has Dask's."""

from __future__ import annotations

import shutil
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


class _LosesJobs(Executor):
    """An executor whose workers are gone."""

    def submit(self, work: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(RuntimeError("the worker died"))
        return future


def test_a_lost_worker_loses_only_its_models(folder: Path, tmp_path: Path) -> None:
    outcomes = list(convert_files([folder], 13, output_dir=tmp_path / "out", executor=_LosesJobs()))
    assert [item.status for item in outcomes] == [3, 3, 3]
    assert all(item.problems[0].endswith("gave up on it (RuntimeError: the worker died)") for item in outcomes)


class _Breaks(Executor):
    """An executor that takes no more after some jobs, as one of processes does when one of them has died."""

    def __init__(self, jobs: int) -> None:
        self.left = jobs

    def submit(self, work: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        if not self.left:
            raise RuntimeError("the pool is broken")
        self.left -= 1
        future: Future[Any] = Future()
        future.set_result(work(*arguments, **options))
        return future


def test_an_executor_that_breaks_keeps_what_it_has_done(folder: Path, tmp_path: Path) -> None:
    paths = [folder / "mean.onnx", folder / "deep" / "gmm.onnx", folder / "broken.onnx"]
    outcomes = list(convert_files(paths, 13, output_dir=tmp_path / "out", executor=_Breaks(1), verify=False))
    assert [item.status for item in outcomes] == [0, 3, 3]
    assert opset(outcomes[0].output) == 13
    assert all(item.problems[0].endswith("gave up on it (RuntimeError: the pool is broken)") for item in outcomes[1:])


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


class _Cancels(Executor):
    """An executor that cancels what it took, as one does that is shut down or that lost its scheduler."""

    def submit(self, work: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.cancel()
        return future


def test_a_job_that_is_cancelled_is_lost() -> None:
    found = list(run_all(str, ["one", "two"], 1, lambda job, why: f"{job}: {why}", executor=_Cancels()))
    assert found == [f"{job}: the executor gave up on it (CancelledError: )" for job in ("one", "two")]


def test_two_models_for_one_output_are_refused_before_any_work(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "mean.onnx", folder / "deep" / "mean.onnx")
    with pytest.raises(ValueError, match="both be written"):
        convert_files([folder / "mean.onnx", folder / "deep" / "mean.onnx"], 13, output_dir=tmp_path / "out")
