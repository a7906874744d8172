"""The public functions for files, and the functions that run one job for each model."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from reducelower.batch.inputs import find_models, plan_outputs
from reducelower.options import Settings, Target
from reducelower.outcome import Outcome
from reducelower.pipeline.conversion import check_model, convert
from reducelower.pipeline.task import Task, outcome_of

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future


__all__ = [
    "check_file",
    "check_files",
    "convert_file",
    "convert_files",
    "converting",
    "crashed",
    "run_all",
]

Job = TypeVar("Job")
Result = TypeVar("Result")


def run_all(
    work: Callable[..., Result],
    jobs: Sequence[Job],
    processes: int,
    crashed: Callable[[Job, str], Result],
    *,
    again: Callable[..., Result] | None = None,
    executor: Executor | None = None,
    is_apart: bool = False,
) -> Generator[Result, None, None]:
    """Yield the result of every job, in the order of the jobs; closing the generator stops the work.

    Args:
        work: does a job and does not raise. The function, jobs and results must be picklable for an executor or for
            spawned processes.
        processes: the number of local processes.
        crashed: returns the result for a job that killed its process, from the job and a description.
        again: used to retry a job that killed its process; `work` by default.
        executor: runs the jobs instead of local processes; it is not shut down.
        is_apart: use another process even for a single job, so that this process survives a crash.
    """
    if executor is not None:
        return _on_executor(executor, work, jobs, crashed)
    if not is_apart and min(processes, len(jobs)) <= 1:
        return (work(job) for job in jobs)
    from reducelower.batch.processes import run_in_processes

    return run_in_processes(work, jobs, processes, crashed, again=again)


def _on_executor(
    executor: Executor, work: Callable[[Job], Result], jobs: Sequence[Job], crashed: Callable[[Job, str], Result]
) -> Generator[Result, None, None]:
    """The results in order; a job that the executor gives up is tried once more, and then counts as crashed.

    The second trial waits until no other job runs: if a model kills a worker, executors blame all jobs on that worker.
    """
    futures: list[Future[Result]] = []
    try:
        with suppress(Exception):  # it takes no more
            futures.extend(executor.submit(work, job) for job in jobs)
        for at, job in enumerate(jobs):
            try:
                result = futures[at].result()
            except Exception:
                for other in futures:
                    with suppress(Exception):
                        other.result()
                result = _alone(executor, work, job, crashed)
            yield result
    finally:
        for future in futures:
            future.cancel()


def _alone(
    executor: Executor, work: Callable[[Job], Result], job: Job, crashed: Callable[[Job, str], Result]
) -> Result:
    try:
        return executor.submit(work, job).result()
    except Exception as error:  # executors raise different types for lost workers
        lines = str(error).splitlines() or [""]
        return crashed(job, f"the executor gave up on it ({type(error).__name__}: {lines[0]})")


def converting(settings: Settings) -> dict[str, Any]:
    """Arguments of `run_all` for conversions."""
    work = partial(convert_file, settings=settings)
    again = None
    if settings.verify:
        # Forked processes have what is imported now.
        from reducelower.child import FORKS
        from reducelower.verification.running.conditions import under

        again = under(isolates=True)(work) if FORKS else None  # onnxruntime may have ended the process
    return {"work": work, "again": again, "crashed": crashed}


def convert_file(task: Task, settings: Settings) -> Outcome:
    """Convert one model; errors are in the outcome, and then there is no output.

    The output is flushed to disk before it gets its name.
    """
    if task.record:
        from reducelower.batch.records import convert_unless_done as work
    else:
        work = convert
    return outcome_of(task.source, lambda: work(task, settings))


def check_file(path: str, settings: Settings) -> Outcome:
    """Check one model; errors are in the outcome. Nothing is written."""
    return outcome_of(path, lambda: check_model(path, settings))


def convert_files(
    paths: Iterable[str | os.PathLike[str]],
    target: Target | int | None,
    *,
    output_dir: str | os.PathLike[str],
    jobs: int = 1,
    executor: Executor | None = None,
    resume: bool = False,
    **settings: Any,
) -> Iterator[Outcome]:
    """Convert model files into a folder, each verified unless ``verify=False``.

    Args:
        paths: files, folders (searched for ``*.onnx`` at every depth) and glob patterns.
        target: what the models have to fit, or just an opset version.
        output_dir: folder for the outputs; models from a folder keep their relative paths.
        jobs: the number of processes, if there is no executor.
        executor: any `concurrent.futures.Executor`, such as that of a cluster (Dask's ``Client.get_executor()``). Its
            workers must see the same paths. It is not shut down.
        resume: keep records in the folder, and keep outputs that were made from the same model and settings.
        settings: further fields of `Settings`, such as ``rules``, ``verify``, ``budget`` and ``overwrite``.

    Returns:
        One outcome for each model, in the order of the paths, as they are ready.

    Raises:
        ValueError: a folder has no model, or two models or their external data would be written to one place.
    """
    goal = target if isinstance(target, Target) else Target(target)
    folder = os.fspath(output_dir)
    models = find_models([os.fspath(path) for path in paths], skip=folder)
    options = Settings(goal, **settings)
    tasks = plan_outputs(
        models, output=None, output_dir=folder, in_place=False, resume=resume, external_data=options.external_data
    )
    return run_all(jobs=tasks, processes=jobs, executor=executor, **converting(options))


def check_files(
    paths: Iterable[str | os.PathLike[str]],
    target: Target | int | None,
    *,
    jobs: int = 1,
    executor: Executor | None = None,
    **settings: Any,
) -> Iterator[Outcome]:
    """Report what a conversion of model files would do; see `convert_files` for the arguments."""
    goal = target if isinstance(target, Target) else Target(target)
    files = [model.path for model in find_models(os.fspath(path) for path in paths)]
    return run_all(partial(check_file, settings=Settings(goal, **settings)), files, jobs, crashed, executor=executor)


def crashed(job: Task | str, why: str) -> Outcome:
    """The outcome of a model that crashed its process."""
    source = job if isinstance(job, str) else job.source
    return Outcome(source, "failed", problems=(f"{source}: {why}",))
