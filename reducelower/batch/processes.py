"""Processes of this machine that take jobs from one list, each the next one when it is done with its last."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from multiprocessing.connection import wait
from multiprocessing.util import Finalize
from typing import Any, TypeVar

__all__ = ["run_in_processes"]

Job = TypeVar("Job")
Result = TypeVar("Result")

_FORKS = sys.platform == "linux"
"""Forked workers have onnx imported already; elsewhere than on Linux forking is not safe."""

_CONTEXT: Any = multiprocessing.get_context("fork" if _FORKS else "spawn")

_MOST = 60 if sys.platform == "win32" else 1 << 16
"""Processes that can be waited for at once."""

_PAUSE = 0.01
"""Seconds between two looks at what has come: to wake for every result takes processor time from the workers."""

_PATIENCE = 10.0
"""Seconds after which a lock that is held for an instant only is taken to be held by a process that died."""


def run_in_processes(
    work: Callable[[Job], Result], jobs: Sequence[Job], processes: int, crashed: Callable[[Job], Result]
) -> Iterator[Result]:
    """Yield the result of every job, in the order of the jobs.

    A process that dies loses the job it had taken and no other. That job is run once more with nothing beside it, as it
    may have been the lack of memory that killed it, and counts as crashed when it dies again. The work does not raise,
    and its results can be pickled. Where processes are spawned, so can it and the jobs, once for each process, which
    pays its start-up once.

    Raises:
        RuntimeError: processes end before they come as far as their first job.
    """
    waiting: dict[int, Result] = {}
    following = 0
    with closing(_as_they_come(work, jobs, processes, crashed)) as found:
        for index, result in found:
            waiting[index] = result
            while following in waiting:
                yield waiting.pop(following)
                following += 1


def _as_they_come(
    work: Callable[[Job], Result], jobs: Sequence[Job], processes: int, crashed: Callable[[Job], Result]
) -> Generator[tuple[int, Result], None, None]:
    """The results with the places of their jobs in the list; after a process died, others go on where it stopped."""
    first = 0
    while first < len(jobs):
        crew = _Crew(work, jobs, first, processes)
        done = set()
        try:
            for index, result in crew.results():
                done.add(index)
                yield index, result
        finally:
            crew.dismiss()
        if crew.taken == first:
            raise RuntimeError(
                "worker processes end as soon as they are started; a script that asks for them needs "
                'if __name__ == "__main__": around what it does, or jobs=1'
            )
        for index in range(first, crew.taken):
            if index not in done:
                yield index, _again(work, jobs[index], crashed)
        first = crew.taken


def _again(work: Callable[[Job], Result], job: Job, crashed: Callable[[Job], Result]) -> Result:
    crew = _Crew(work, [job], 0, 1)
    try:
        results: list[Result] = [result for _, result in crew.results()]
    finally:
        crew.dismiss()
    return results[0] if results else crashed(job)


class _Crew:
    """Processes at work on one list; when one of them dies, the others take no more and come to their end.

    Attributes:
        taken: up to which job, this one excluded, jobs were taken from the list; after the crew was dismissed.
    """

    def __init__(self, work: Callable[[Any], Any], jobs: Sequence[Any], first: int, processes: int) -> None:
        self.taken = self._end = len(jobs)
        self._next = _CONTEXT.Value("q", first)
        self._workers: dict[Any, Any] = {}  # by the end of the pipe that their results come out of
        # Whoever ends while a crew is at work, having lost interest in it, would wait for the end of all its jobs.
        self._at_exit = Finalize(None, self.dismiss, exitpriority=10)
        try:
            for _ in range(min(processes, len(jobs) - first, _MOST)):
                self._start(work, jobs)
        except BaseException:
            self.dismiss()
            raise

    def _start(self, work: Callable[[Any], Any], jobs: Sequence[Any]) -> None:
        reader, writer = _CONTEXT.Pipe(duplex=False)
        inherited = [*self._workers, reader] if _FORKS else []
        worker = _CONTEXT.Process(target=_serve, args=(work, jobs, self._next, writer, inherited))
        worker.start()
        writer.close()
        self._workers[reader] = worker

    def results(self) -> Iterator[tuple[int, Any]]:
        """What comes of the jobs, with their places in the list, as it comes; until all processes have ended."""
        while self._workers:
            time.sleep(_PAUSE)
            ready: list[Any] = wait(list(self._workers))
            for reader in ready:
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
        self._at_exit.cancel()

    def _ended(self, reader: Any) -> None:
        worker = self._workers.pop(reader)
        reader.close()
        worker.join()
        if worker.exitcode:
            self._stop()

    def _stop(self) -> None:
        """Let nobody take another job."""
        lock = self._next.get_lock()
        if lock.acquire(timeout=_PATIENCE):
            self._note_taken()
            lock.release()
        else:
            # A process died with the lock, for which the others wait for good, or will when they are done.
            for worker in self._workers.values():
                worker.kill()
            self._note_taken()

    def _note_taken(self) -> None:
        following = self._next.get_obj()
        self.taken = min(self.taken, following.value)
        following.value = self._end


def _serve(
    work: Callable[[Any], Any], jobs: Sequence[Any], next_job: Any, results: Any, inherited: Sequence[Any]
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
        # Connection.send would look for a way to pickle at every object.
        result = pickle.dumps((index, work(jobs[index])))
        try:
            results.send_bytes(result)
        except OSError:  # nobody waits for it any more
            return
