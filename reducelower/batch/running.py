"""Runs one piece of work per model, in this process or in several, past whatever goes wrong with one of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future, ProcessPoolExecutor

__all__ = ["run_all"]

Job = TypeVar("Job")
Result = TypeVar("Result")


def run_all(
    work: Callable[[Job], Result],
    jobs: Sequence[Job],
    processes: int,
    crashed: Callable[..., Result],
    *,
    executor: Executor | None = None,
) -> Iterator[Result]:
    """Yield the result of every job, in the order of the jobs.

    Args:
        work: what to do; it does not raise, and it can be sent to another process.
        jobs: what to do it with.
        processes: how many processes may work; each pays its start-up once.
        crashed: the result for a job that killed its process; called with the job, and with a sentence where an
            executor says what happened.
        executor: where to run them instead of in processes of our own; it is not shut down.
    """
    if executor is not None:
        yield from _elsewhere(executor, work, jobs, crashed)
        return
    if min(processes, len(jobs)) <= 1:
        yield from map(work, jobs)
        return
    with _pool(min(processes, len(jobs)), work) as pool:
        futures: list[Future[Result] | None] = [_submitted(pool, job) for job in jobs]
        try:
            for future, job in zip(futures, jobs, strict=True):
                yield _result(future, work, job, crashed)
        finally:
            for future in futures:
                if future is not None:
                    future.cancel()


def _submitted(pool: Executor, job: Any) -> Future[Any] | None:
    """The job handed to the pool; None where the pool is broken already."""
    from concurrent.futures.process import BrokenProcessPool

    try:
        return pool.submit(_work_on, job)
    except BrokenProcessPool:
        return None


def _result(
    future: Future[Result] | None, work: Callable[[Job], Result], job: Job, crashed: Callable[..., Result]
) -> Result:
    """What came of a job, which is run again by itself where a process that died took it along.

    So only the job that killed its process is lost, and those that were done are not done twice.
    """
    from concurrent.futures.process import BrokenProcessPool

    if future is not None:
        try:
            return future.result()
        except BrokenProcessPool:
            pass
    with _pool(1, work) as alone:
        try:
            found: Result = alone.submit(_work_on, job).result()
            return found
        except BrokenProcessPool:
            return crashed(job)


def _elsewhere(
    executor: Executor, work: Callable[[Job], Result], jobs: Sequence[Job], crashed: Callable[..., Result]
) -> Iterator[Result]:
    """The results in order; a job that the executor itself gives up on is one that crashed."""
    futures = [executor.submit(work, job) for job in jobs]
    try:
        for future, job in zip(futures, jobs, strict=True):
            try:
                result = future.result()
            except Exception as error:  # every executor has its own kinds for workers that are gone
                lines = str(error).splitlines() or [""]
                result = crashed(job, f"the executor gave it up ({type(error).__name__}: {lines[0]})")
            yield result
    finally:
        for future in futures:
            future.cancel()


def _pool(processes: int, work: Callable[[Any], Any]) -> ProcessPoolExecutor:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # Forked workers have onnx imported already; elsewhere than on Linux forking is not safe.
    method = "fork" if sys.platform == "linux" else "spawn"
    context = multiprocessing.get_context(method)
    return ProcessPoolExecutor(processes, mp_context=context, initializer=_prepare, initargs=(work,))


_work: Callable[[Any], Any] | None = None
"""What this worker does with its jobs: handed over once, since the settings in it are larger than a job."""


def _prepare(work: Callable[[Any], Any]) -> None:
    """Make a new process a worker, which leaves interrupts to its parent."""
    import signal

    global _work  # A process pool has nowhere else to keep what its workers share.
    _work = work
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _work_on(job: Any) -> Any:
    assert _work is not None
    return _work(job)
