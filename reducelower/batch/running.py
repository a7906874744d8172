"""Runs one piece of work per model, in this process or in several, past whatever goes wrong with one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

from reducelower.failures import SettingError

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

__all__ = ["run_all", "workers"]

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
    on_step: Callable[..., None] | None = None,
) -> Iterator[Result]:
    """Yield the result of every job, in the order of the jobs.

    Args:
        work: what to do; it does not raise, and its results can be sent from one process to another. So can it and
            the jobs, where they go to an executor, or processes are spawned rather than forked.
        jobs: what to do it with.
        processes: how many processes may work; each pays its start-up once.
        crashed: the result for a job that killed its process; called with the job and with what happened.
        again: what to do once more with a job that killed its process; the same where None.
        executor: where to run them instead of in processes of our own; it is not shut down.
        is_apart: whether a single process is none of ours but one of its own, too, so that this one lives on.
        on_step: passed on to the work, but not to an executor.
    """
    if executor is not None:
        return _elsewhere(executor, work, jobs, crashed)
    in_memory = is_apart and any("memory://" in str(job) for job in jobs)  # a file of one process
    if (in_memory or not is_apart) and min(processes, len(jobs)) <= 1:
        return (work(job) if on_step is None else work(job, on_step=on_step) for job in jobs)
    from reducelower.batch.processes import run_in_processes

    return run_in_processes(work, jobs, processes, crashed, again=again, on_step=on_step)


def _elsewhere(
    executor: Executor, work: Callable[[Job], Result], jobs: Sequence[Job], crashed: Callable[[Job, str], Result]
) -> Iterator[Result]:
    """The results in order; a job that the executor itself gives up on is one that crashed."""
    futures: list[Future[Result]] = []
    try:
        futures.extend(_submitted(executor, work, job) for job in jobs)
        for future, job in zip(futures, jobs, strict=True):
            try:
                result = future.result()
            except Exception as error:  # every executor has its own kinds for workers that are gone
                lines = str(error).splitlines() or [""]
                result = crashed(job, f"the executor gave up on it ({type(error).__name__}: {lines[0]})")
            yield result
    finally:
        for future in futures:
            future.cancel()


def _submitted(executor: Executor, work: Callable[[Job], Result], job: Job) -> Future[Result]:
    """Hand a job over; an executor that takes none any more has given it up, and others may have come to an end."""
    try:
        return executor.submit(work, job)
    except Exception as error:
        from concurrent.futures import Future  # hardly ever needed

        refused: Future[Result] = Future()
        refused.set_exception(error)
        return refused


def workers(scheduler: str | None, jobs: int) -> AbstractContextManager[Executor | Any]:
    """The executor of a cluster for as long as it is used; None stands for this machine.

    Raises:
        SettingError: both are asked for, or there is no such cluster.
    """
    if not scheduler:
        return nullcontext()
    if jobs > 1:
        raise SettingError(
            "--jobs is about this machine, and with --scheduler a cluster does the work; give one of them"
        )
    from reducelower.batch.cluster import dask_executor

    return dask_executor(scheduler)
