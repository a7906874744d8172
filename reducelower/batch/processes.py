"""Processes of this machine that take jobs from one list, each the next when it is done with the one before."""

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
"""Processes that can be waited for at once."""

_PAUSE = 0.01
"""Seconds between two looks at what has come: to wake for every result takes processor time from the workers."""

_LONGEST_WORDS = 200

_PATIENCE = 10.0
"""Seconds after which a lock that is held for an instant only is taken to be held by a process that died."""


def run_in_processes(
    work: Callable[..., Result],
    jobs: Sequence[Job],
    processes: int,
    crashed: Callable[[Job, str], Result],
    *,
    again: Callable[..., Result] | None = None,
    on_step: Callable[..., None] | None = None,
) -> Iterator[Result]:
    """Yield the result of every job, in the order of the jobs; the arguments are those of `many.run_all`.

    A process that dies loses the job it had taken and no other. That job is run once more with nothing beside it, as it
    may have been the lack of memory that killed it, and counts as crashed when it dies again. Each process pays its
    start-up once. `on_step` is called here with whatever the work hands to its argument of this name.

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
    """The results with the places of their jobs in the list; after a process died, others go on where it stopped."""
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
    """Processes at work on one list; when one of them dies, the others take no more and come to their end.

    As a context manager it is dismissed: every process finishes what it is at, whether or not anybody wants the result,
    and its end is waited for. Only an interrupt ends them at once, where that leaves nothing half written. After that
    `taken` is the place in the list up to which jobs were taken, and `ending` says how the last process died.
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
        # Whoever ends while a crew is at work, having lost interest in it, would wait for the end of all its jobs.
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
        """What comes of the jobs, with their places in the list, as it comes; until all processes have ended."""
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
        """Wait for the end of a process; what it said on standard error is passed on, unless it died."""
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
        """Let nobody take another job."""
        lock = self._next.get_lock()
        if lock.acquire(timeout=_PATIENCE):
            self._note_taken()
            lock.release()
        else:
            # A process died with the lock, for which the others wait for good, or will when they are done.
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
    """How a process died, and its last words."""
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
    """What a worker does, from its first job to its end; interrupts are for its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # The parent alone reads, and each worker alone writes: so either side notices when the other is gone.
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
