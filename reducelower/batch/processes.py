"""Processes of this machine that take jobs from one list, each the next one when it is done with its last."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

__all__ = ["run_in_processes"]

Job = TypeVar("Job")
Result = TypeVar("Result")

_FORKS = sys.platform == "linux"
"""Forked workers have onnx imported already; elsewhere than on Linux forking is not safe."""

_CONTEXT: Any = multiprocessing.get_context("fork" if _FORKS else "spawn")

_PAUSE = 0.01
"""Seconds between two looks at what has come: to wake for every result takes processor time from the workers."""


def run_in_processes(
    work: Callable[[Job], Result], jobs: Sequence[Job], processes: int, crashed: Callable[[Job], Result]
) -> Iterator[Result]:
    """Yield the result of every job, in the order of the jobs.

    A process that dies loses the job it had taken and no other. That job is run once more with nothing beside it, as
    it may have been the lack of memory that killed it, and counts as crashed when it dies again.

    Args:
        work: what to do; it does not raise.
        jobs: what to do it with.
        processes: how many processes work; each pays its start-up once.
        crashed: the result for a job that killed its process.
    """
    results: dict[int, Result] = {}
    yielded = first = 0
    while first < len(jobs):
        crew = _Crew(work, jobs, first, processes)
        try:
            for index, result in crew.results():
                results[index] = result
                while yielded in results:
                    yield results.pop(yielded)
                    yielded += 1
        finally:
            crew.dismiss()
        lost = [index for index in range(yielded, crew.taken) if index not in results]
        for index in lost:
            results[index] = _again(work, jobs[index], crashed)
        first = crew.taken
        while yielded in results:
            yield results.pop(yielded)
            yielded += 1


def _again(work: Callable[[Job], Result], job: Job, crashed: Callable[[Job], Result]) -> Result:
    crew = _Crew(work, [job], 0, 1)
    try:
        results: list[Result] = [result for _, result in crew.results()]
    finally:
        crew.dismiss()
    return results[0] if results else crashed(job)


class _Crew:
    """Processes at work on one list; when one of them dies, the others take no more and come to their end."""

    def __init__(self, work: Callable[[Any], Any], jobs: Sequence[Any], first: int, processes: int) -> None:
        self._next = _CONTEXT.Value("q", first)
        self._end = len(jobs)
        self._workers: dict[Connection, Any] = {}
        for _ in range(min(processes, len(jobs) - first)):
            reader, writer = _CONTEXT.Pipe(duplex=False)
            inherited = [*self._workers, reader] if _FORKS else []
            worker = _CONTEXT.Process(target=_serve, args=(work, jobs, self._next, writer, inherited))
            worker.start()
            writer.close()
            self._workers[reader] = worker
        self.taken = self._end
        """Up to which job, this one excluded, jobs were taken from the list."""

    def results(self) -> Iterator[tuple[int, Any]]:
        """What comes of the jobs, with their places in the list, as it comes; until all processes have ended."""
        while self._workers:
            time.sleep(_PAUSE)
            for reader in wait(list(self._workers)):
                assert isinstance(reader, Connection)
                try:
                    while reader.poll():
                        yield pickle.loads(reader.recv_bytes())
                except (EOFError, OSError):
                    self._ended(reader)

    def dismiss(self) -> None:
        """Let every process finish what it is at, whether or not anybody wants the result, and wait for its end."""
        self._stop()
        for reader in self._workers:
            reader.close()
        for worker in self._workers.values():
            worker.join()
        self._workers.clear()

    def _ended(self, reader: Connection) -> None:
        worker = self._workers.pop(reader)
        reader.close()
        worker.join()
        if worker.exitcode:
            self._stop()

    def _stop(self) -> None:
        """Let nobody take another job."""
        with self._next.get_lock():
            self.taken = min(self.taken, self._next.value)
            self._next.value = self._end


def _serve(
    work: Callable[[Any], Any], jobs: Sequence[Any], next_job: Any, results: Connection, inherited: list[Connection]
) -> None:
    """What a worker does, from its first job to its end; interrupts are for its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The parent alone reads, and each worker alone writes: so either side notices when the other is gone.
    for reader in inherited:
        reader.close()
    while True:
        with next_job.get_lock():
            index = next_job.value
            if index >= len(jobs):
                return
            next_job.value = index + 1
        result = work(jobs[index])
        try:
            results.send_bytes(pickle.dumps((index, result)))  # Connection.send looks for a reducer at every object
        except OSError:  # nobody waits for it any more
            return
