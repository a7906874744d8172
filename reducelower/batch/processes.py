"""Local worker processes that take jobs from one list."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from multiprocessing.connection import wait
from multiprocessing.util import Finalize
from typing import Any, TypeVar

from reducelower.batch.task import FORKS

__all__ = ["run_in_processes"]

Job = TypeVar("Job")
Result = TypeVar("Result")

_CONTEXT: Any = multiprocessing.get_context("fork" if FORKS else "spawn")

_MOST = 60 if sys.platform == "win32" else 1 << 16
"""The most processes that can be waited for at once."""

_PAUSE = 0.01
"""Seconds between two looks at results: waking up for each one would take processor time from the workers."""

_LONGEST_WORDS = 200

_PATIENCE = 10.0
"""Seconds after which a lock that is normally held for an instant is assumed to belong to a dead process."""


def run_in_processes(
    work: Callable[..., Result],
    jobs: Sequence[Job],
    processes: int,
    crashed: Callable[[Job, str], Result],
    *,
    again: Callable[..., Result] | None = None,
    on_step: Callable[..., None] | None = None,
) -> Iterator[Result]:
    """Yield the result of every job, in the order of the jobs; arguments as for `many.run_all`.

    A process that dies loses only its current job. That job is retried alone, since lack of memory may have killed it,
    and counts as crashed if it fails again. Each process starts up once. `on_step` is called here with what the work
    passes to its own `on_step`.

    Raises:
        RuntimeError: processes end before their first job.
    """
    waiting: dict[int, Result] = {}
    following = 0
    with closing(_as_they_come(work, again or work, jobs, processes, crashed, on_step)) as found:
        for index, result in found:
            waiting[index] = result
            while following in waiting:
                yield waiting.pop(following)
                following += 1


def _as_they_come(
    work: Callable[..., Result],
    again: Callable[..., Result],
    jobs: Sequence[Job],
    processes: int,
    crashed: Callable[[Job, str], Result],
    on_step: Callable[..., None] | None,
) -> Generator[tuple[int, Result], None, None]:
    """The results with the indices of their jobs; after a process died, new ones continue."""
    first = 0
    while first < len(jobs):
        crew = _Crew(work, jobs, first, processes, on_step)
        done = set()
        with crew:
            for index, result in crew.results():
                done.add(index)
                yield index, result
        if crew.taken == first:
            raise RuntimeError(
                "worker processes end as soon as they are started; a script that asks for them needs "
                'if __name__ == "__main__": around what it does, or jobs=1'
            )
        for index in range(first, crew.taken):
            if index not in done:
                with _Crew(again, [jobs[index]], 0, 1, on_step) as alone:
                    results = [result for _, result in alone.results()]
                yield index, results[0] if results else crashed(jobs[index], alone.ending)
        first = crew.taken


class _Crew:
    """Processes that work on one list; if one dies, the others take no more jobs and end.

    Leaving the context waits until every process has finished its current job, whether or not its result is wanted.
    Only an interrupt ends them at once, if that leaves nothing half written. Afterwards `taken` is the number of jobs
    taken from the list, and `ending` says how the last process died.
    """

    def __init__(
        self,
        work: Callable[..., Any],
        jobs: Sequence[Any],
        first: int,
        processes: int,
        on_step: Callable[..., None] | None,
    ) -> None:
        self.taken = self._end = len(jobs)
        self.ending = ""
        self._on_step = on_step
        self._next = _CONTEXT.Value("q", first)
        self._workers: dict[Any, tuple[Any, int]] = {}  # by the end of the pipe that their results come out of
        # Otherwise a process that ends while a crew is at work would wait for all of its jobs.
        self._at_exit = Finalize(None, self._dismiss, exitpriority=10)
        try:
            for _ in range(min(processes, len(jobs) - first, _MOST)):
                self._start(work, jobs)
        except BaseException:
            self._dismiss()
            raise

    def __enter__(self) -> _Crew:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if FORKS and kind is not None and issubclass(kind, KeyboardInterrupt):
            self._kill()
        self._dismiss()

    def _start(self, work: Callable[..., Any], jobs: Sequence[Any]) -> None:
        reader, writer = _CONTEXT.Pipe(duplex=False)
        inherited = [*self._workers, reader] if FORKS else []
        said = os.memfd_create("said") if FORKS else -1
        tells = self._on_step is not None
        worker = _CONTEXT.Process(target=_serve, args=(work, jobs, self._next, writer, inherited, said, tells))
        worker.start()
        writer.close()
        self._workers[reader] = worker, said

    def results(self) -> Iterator[tuple[int, Any]]:
        """The results with the indices of their jobs, as they come, until all processes have ended."""
        while self._workers:
            if len(self._workers) > 1:
                time.sleep(_PAUSE)
            ready: list[Any] = wait(list(self._workers))
            for reader in ready:
                try:
                    while reader.poll():
                        index, result = pickle.loads(reader.recv_bytes())
                        if index is not None:
                            yield index, result
                        elif self._on_step is not None:
                            self._on_step(*result)
                except (EOFError, OSError):
                    self._ended(reader)

    def _dismiss(self) -> None:
        self._stop()
        for reader in list(self._workers):
            self._ended(reader)
        self._at_exit.cancel()

    def _ended(self, reader: Any) -> None:
        """Wait for the end of a process; pass on its standard error, unless it died."""
        worker, said = self._workers.pop(reader)
        reader.close()
        worker.join()
        text = _read(said)
        if worker.exitcode:
            self._stop()
            self.ending = _ending(worker.exitcode, text)
        elif text:
            sys.stderr.write(text)

    def _stop(self) -> None:
        """Let no process take another job."""
        lock = self._next.get_lock()
        if lock.acquire(timeout=_PATIENCE):
            self._note_taken()
            lock.release()
        else:
            # A process died while it held the lock, so the others wait for it forever, or will after their job.
            self._kill()
            self._note_taken()

    def _kill(self) -> None:
        for worker, _ in self._workers.values():
            worker.kill()

    def _note_taken(self) -> None:
        following = self._next.get_obj()
        self.taken = min(self.taken, following.value)
        following.value = self._end


def _read(descriptor: int) -> str:
    if descriptor < 0:
        return ""
    with open(descriptor, "rb") as file:
        file.seek(0)
        return file.read().decode("utf-8", "replace")


def _ending(status: int, said: str) -> str:
    """How a process died, with the last line of its standard error."""
    from reducelower.conformance.process import status_text

    lines = said.split("\n")
    words = next((line.strip() for line in reversed(lines) if line.strip()), "")
    how = f"{status_text(status)} ({words[:_LONGEST_WORDS]})" if words else status_text(status)
    if status == -getattr(signal, "SIGKILL", 0):
        how += ", as the system does when memory runs out"
    return f"the process that worked on it died twice, alone the second time: {how}; please report this with the model"


def _serve(
    work: Callable[..., Any],
    jobs: Sequence[Any],
    next_job: Any,
    results: Any,
    inherited: Sequence[Any],
    said: int,
    tells: bool,
) -> None:
    """The work of a process, from its first job to its end; interrupts are left to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Only the parent reads and only this worker writes, so each side notices when the other is gone.
    for reader in inherited:
        reader.close()
    if said >= 0:
        os.dup2(said, 2)  # what C++ says when it ends a process becomes a sentence

    def send(message: object) -> None:
        # Connection.send would look for a way to pickle at every object.
        results.send_bytes(pickle.dumps(message))

    if tells:
        work = partial(work, on_step=lambda *step: send((None, step)))
    while True:
        with next_job.get_lock():
            index = next_job.value
            if index >= len(jobs):
                return
            next_job.value = index + 1
        result = index, work(jobs[index])
        try:
            send(result)
        except OSError:  # nobody waits for it any more
            return
