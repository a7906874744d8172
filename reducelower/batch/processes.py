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
"""The maximum number of processes that can be waited for at once."""

_LONGEST_MESSAGE = 200


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

    If a process dies, only its current job is lost. That job is retried alone, since lack of memory may be the cause,
    and counts as crashed if it fails again. `on_step` is called here with the arguments that the work passes to its own
    `on_step`. Closing the generator or an interrupt ends all processes at once. `method` is how processes start.

    Raises:
        RuntimeError: processes end before they are ready.
    """
    ready: dict[int, Result] = {}
    next_index = 0
    with closing(_unordered(work, again or work, jobs, processes, crashed, on_step, method)) as results:
        for index, result in results:
            ready[index] = result
            while next_index in ready:
                yield ready.pop(next_index)
                next_index += 1


def _unordered(
    work: Callable[..., Result],
    again: Callable[..., Result],
    jobs: Sequence[Job],
    processes: int,
    crashed: Callable[[Job, str], Result],
    on_step: Callable[..., None] | None,
    method: str,
) -> Generator[tuple[int, Result], None, None]:
    """The results with the indices of their jobs; after a process died, new processes continue."""
    remaining = deque(range(len(jobs)))
    while remaining:
        with _Crew(work, jobs, min(processes, len(remaining), _MOST), on_step, method) as crew:
            yield from crew.results(remaining)
        for index in crew.lost:
            with _Crew(again, jobs, 1, on_step, method) as alone:
                results = [result for _, result in alone.results(deque([index]))]
            yield index, results[0] if results else crashed(jobs[index], alone.ending)


class _Crew:
    """Processes that work on the same jobs; if one dies, the others get no more jobs.

    At the exit of the context, the processes are ended at once on Linux, where no half-written output is left;
    elsewhere their current jobs are awaited. Then `lost` has the jobs whose processes died, and `ending` says how the
    last one died.
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
        # Otherwise, if this process exits during the work, it would wait for all jobs.
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
        errors = os.memfd_create("stderr") if self._forks else -1
        process = context.Process(
            target=_serve, args=(work, jobs, theirs, inherited, errors, self._on_step is not None)
        )
        process.start()
        theirs.close()
        self._workers[ours] = process, errors

    def results(self, remaining: deque[int]) -> Iterator[tuple[int, Any]]:
        """Results with the indices of their jobs, when ready; takes jobs from `remaining` until a process dies."""
        for pipe in list(self._workers):
            self._give(pipe, remaining)
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
                    self._give(pipe, remaining)
                    yield index, result
                elif result and self._on_step is not None:
                    self._on_step(*result)

    def _give(self, pipe: Any, remaining: deque[int]) -> None:
        """Give a process its next job, or let it end."""
        if self.ending or not remaining:
            self._leave(pipe)
            return
        self._current[pipe] = remaining.popleft()
        with contextlib.suppress(OSError):  # it died; reading from the pipe will show this
            pipe.send(self._current[pipe])

    def _died(self, pipe: Any) -> None:
        status, text = self._leave(pipe)
        if not self._is_ready:
            raise RuntimeError(
                "worker processes end as soon as they are started; a script that asks for them needs "
                'if __name__ == "__main__": around what it does, or jobs=1'
            )
        self.ending = _ending(status, text)
        self.lost.append(self._current[pipe])

    def _leave(self, pipe: Any) -> tuple[int, str]:
        """Wait for the end of a process; return status and standard error, which is passed on if the status is 0."""
        process, stderr = self._workers.pop(pipe)
        pipe.close()
        process.join()
        text = ""
        if stderr >= 0:
            with os.fdopen(stderr, "rb") as file:
                file.seek(0)
                text = file.read().decode("utf-8", "replace")
        if text and not process.exitcode:
            sys.stderr.write(text)
        return process.exitcode, text

    def _end(self) -> None:
        """End all processes: at once on Linux, where an unfinished file has no name yet."""
        for process, _ in self._workers.values() if self._forks else ():
            try:
                os.killpg(process.pid, signal.SIGKILL)  # with its own children
            except ProcessLookupError:
                process.kill()  # it has no process group yet
        for pipe in list(self._workers):
            self._leave(pipe)
        self._at_exit.cancel()


def _ending(status: int, stderr: str) -> str:
    """How a process died, with the last line of its standard error."""
    from reducelower.conformance.process import status_text

    message = next((line.strip() for line in reversed(stderr.split("\n")) if line.strip()), "")
    end = f"{status_text(status)} ({message[:_LONGEST_MESSAGE]})" if message else status_text(status)
    if status == -getattr(signal, "SIGKILL", 0):
        end += ", as the system does when memory runs out"
    return f"the process that worked on it died twice, alone the second time: {end}; please report this with the model"


def _serve(
    work: Callable[..., Any], jobs: Sequence[Any], pipe: Any, inherited: Sequence[Any], stderr: int, with_steps: bool
) -> None:
    """The main function of a worker process; the parent handles interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)
    # Close inherited ends, so that each side of a pipe notices when the other is gone.
    for other in inherited:
        other.close()
    if stderr >= 0:
        os.dup2(stderr, 2)  # the error message of native code that ends the process
    if with_steps:
        work = partial(work, on_step=lambda *step: pipe.send((None, step)))
    with contextlib.suppress(EOFError, OSError):  # the parent is gone
        pipe.send((None, ()))
        while True:
            index = pipe.recv()
            result = work(jobs[index])
            pipe.send((index, result))
