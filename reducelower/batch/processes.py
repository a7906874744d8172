"""Local worker processes, each with a pipe for its jobs and results."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from multiprocessing.connection import wait
from multiprocessing.util import Finalize
from typing import Any, TypeVar

from reducelower.pipeline.task import FORKS

__all__ = ["run_in_processes"]

Job = TypeVar("Job")
Result = TypeVar("Result")

_MOST = 60 if sys.platform == "win32" else 1 << 16
"""The most processes that can be waited for at once."""

_LONGEST_WORDS = 200


def run_in_processes(
    work: Callable[..., Result],
    jobs: Sequence[Job],
    processes: int,
    crashed: Callable[[Job, str], Result],
    *,
    again: Callable[..., Result] | None = None,
    on_step: Callable[..., None] | None = None,
    method: str = "fork" if FORKS else "spawn",
) -> Generator[Result, None, None]:
    """Yield the result of every job, in the order of the jobs; arguments as for `many.run_all`.

    A process that dies loses only its current job. That job is retried alone, since lack of memory may have killed it,
    and counts as crashed if it fails again. `on_step` is called here with what the work passes to its own `on_step`.
    Who wants no more results, or is interrupted, ends all processes at once. `method` says how processes are started.

    Raises:
        RuntimeError: processes end before they are ready.
    """
    waiting: dict[int, Result] = {}
    following = 0
    with closing(_as_they_come(work, again or work, jobs, processes, crashed, on_step, method)) as found:
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
    method: str,
) -> Generator[tuple[int, Result], None, None]:
    """The results with the indices of their jobs; after a process died, new ones continue."""
    left = deque(range(len(jobs)))
    while left:
        with _Crew(work, jobs, min(processes, len(left), _MOST), on_step, method) as crew:
            yield from crew.results(left)
        for index in crew.lost:
            with _Crew(again, jobs, 1, on_step, method) as alone:
                results = [result for _, result in alone.results(deque([index]))]
            yield index, results[0] if results else crashed(jobs[index], alone.ending)


class _Crew:
    """Processes that work on the same jobs; if one dies, the others are given no more.

    Leaving the context by an exception ends the processes at once, where that leaves nothing half written; else it
    waits for their current jobs. Afterwards `lost` has the jobs that processes died of, and `ending` says how the last
    one died.
    """

    def __init__(
        self,
        work: Callable[..., Any],
        jobs: Sequence[Any],
        processes: int,
        on_step: Callable[..., None] | None,
        method: str,
    ) -> None:
        self.lost: list[int] = []
        self.ending = ""
        self._on_step = on_step
        self._forks = method == "fork"
        self._workers: dict[Any, tuple[Any, int]] = {}  # process and standard error, by pipe
        self._current: dict[Any, int] = {}  # the job that has no result yet, by pipe
        self._is_ready = False
        # Otherwise a process that ends while a crew is at work would wait for all of its jobs.
        self._at_exit = Finalize(None, self._end, exitpriority=10)
        try:
            for _ in range(processes):
                self._start(work, jobs, multiprocessing.get_context(method))
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> _Crew:
        return self

    def __exit__(self, *error: object) -> None:
        self._end()

    def _start(self, work: Callable[..., Any], jobs: Sequence[Any], context: Any) -> None:
        ours, theirs = context.Pipe()
        inherited = [*self._workers, ours] if self._forks else []
        said = os.memfd_create("said") if self._forks else -1
        process = context.Process(target=_serve, args=(work, jobs, theirs, inherited, said, self._on_step is not None))
        process.start()
        theirs.close()
        self._workers[ours] = process, said

    def results(self, left: deque[int]) -> Iterator[tuple[int, Any]]:
        """Results with the indices of their jobs, as they come; jobs are taken from `left` until a process dies."""
        for pipe in list(self._workers):
            self._give(pipe, left)
        while self._workers:
            ready: list[Any] = wait(list(self._workers))
            for pipe in ready:
                try:
                    index, result = pipe.recv()
                except (EOFError, OSError):
                    self._died(pipe)
                    continue
                self._is_ready = True
                if index is not None:
                    self._give(pipe, left)
                    yield index, result
                elif result and self._on_step is not None:
                    self._on_step(*result)

    def _give(self, pipe: Any, left: deque[int]) -> None:
        """Give a process its next job, or let it end."""
        if self.ending or not left:
            self._leave(pipe)
            return
        self._current[pipe] = left.popleft()
        with contextlib.suppress(OSError):  # it died, which reading from it tells
            pipe.send(self._current[pipe])

    def _died(self, pipe: Any) -> None:
        status, words = self._leave(pipe)
        if not self._is_ready:
            raise RuntimeError(
                "worker processes end as soon as they are started; a script that asks for them needs "
                'if __name__ == "__main__": around what it does, or jobs=1'
            )
        self.ending = _ending(status, words)
        self.lost.append(self._current[pipe])

    def _leave(self, pipe: Any) -> tuple[int, str]:
        """Wait for the end of a process; its status, and what it said on standard error, which is passed on at 0."""
        process, said = self._workers.pop(pipe)
        pipe.close()
        process.join()
        words = ""
        if said >= 0:
            with os.fdopen(said, "rb") as file:
                file.seek(0)
                words = file.read().decode("utf-8", "replace")
        if words and not process.exitcode:
            sys.stderr.write(words)
        return process.exitcode, words

    def _end(self) -> None:
        """End all processes: at once on Linux, where a file that is being written has no name yet."""
        for process, _ in self._workers.values() if self._forks else ():
            try:
                os.killpg(process.pid, signal.SIGKILL)  # it, and what it started
            except ProcessLookupError:
                process.kill()  # before it had a group of its own
        for pipe in list(self._workers):
            self._leave(pipe)
        self._at_exit.cancel()


def _ending(status: int, said: str) -> str:
    """How a process died, with the last line of its standard error."""
    from reducelower.conformance.process import status_text

    words = next((line.strip() for line in reversed(said.split("\n")) if line.strip()), "")
    how = f"{status_text(status)} ({words[:_LONGEST_WORDS]})" if words else status_text(status)
    if status == -getattr(signal, "SIGKILL", 0):
        how += ", as the system does when memory runs out"
    return f"the process that worked on it died twice, alone the second time: {how}; please report this with the model"


def _serve(
    work: Callable[..., Any], jobs: Sequence[Any], pipe: Any, inherited: Sequence[Any], said: int, tells: bool
) -> None:
    """The work of a process, from its first job to its end; interrupts are left to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)
    # Each pipe has two ends that are open, so each side notices when the other is gone.
    for other in inherited:
        other.close()
    if said >= 0:
        os.dup2(said, 2)  # what C++ says when it ends a process becomes a sentence
    if tells:
        work = partial(work, on_step=lambda *step: pipe.send((None, step)))
    with contextlib.suppress(EOFError, OSError):  # nobody waits for results any more
        pipe.send((None, ()))
        while True:
            index = pipe.recv()
            result = work(jobs[index])
            pipe.send((index, result))
