"""Local worker processes, each with a pipe for its jobs and results."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from multiprocessing.connection import wait
from typing import Any, NamedTuple, TypeVar

from reducelower.child import FORKS, Child, Death

__all__ = ["run_in_processes"]

Job = TypeVar("Job")
Result = TypeVar("Result")

_MOST = 60 if sys.platform == "win32" else 1 << 16
"""The maximum number of processes that can be waited for at once."""


def run_in_processes(
    work: Callable[..., Result],
    jobs: Sequence[Job],
    processes: int,
    crashed: Callable[[Job, str], Result],
    *,
    again: Callable[..., Result] | None = None,
    method: str = "fork" if FORKS else "spawn",
) -> Generator[Result, None, None]:
    """Yield the result of every job, in the order of the jobs; arguments as for `many.run_all`.

    If a process dies, only its current job is lost. That job is retried alone, since lack of memory may be the cause,
    and counts as crashed if it fails again. Closing the generator or an interrupt ends all processes at once. `method`
    is how processes start.

    Raises:
        RuntimeError: processes end before they are ready.
    """
    crew = _Crew(work, again or work, jobs, min(processes, _MOST), method)
    ready: dict[int, Result] = {}
    with closing(crew.results(crashed)) as results:
        for index in range(len(jobs)):
            while index not in ready:
                ready.update([next(results)])
            yield ready.pop(index)


class _Attempt(NamedTuple):
    """A process at work on a job, which its index stands for."""

    child: Child
    job: int
    is_second: bool


class _Crew:
    """Processes that take job after job; a job whose process died is retried once no other process is at work."""

    def __init__(
        self,
        work: Callable[..., Any],
        again: Callable[..., Any],
        jobs: Sequence[Any],
        processes: int,
        method: str,
    ) -> None:
        self._jobs = jobs
        self._processes = processes
        start = partial(Child.of_function, _serve, method=method)
        self._start, self._start_again = partial(start, work), partial(start, again)
        self._waiting, self._lost = deque(range(len(jobs))), deque[int]()
        self._busy: dict[Any, _Attempt] = {}  # by pipe
        self._idle: list[Child] = []
        self._is_ready = False

    def results(self, crashed: Callable[[Any, str], Any]) -> Generator[tuple[int, Any], None, None]:
        """Results with the indices of their jobs, when ready."""
        done: list[tuple[int, Any]] = []
        try:
            while True:
                self._give()
                yield from done
                if not self._busy:
                    return
                done = [result for pipe in wait(list(self._busy)) for result in self._taken(pipe, crashed)]
        finally:
            for child in (*self._idle, *(attempt.child for attempt in self._busy.values())):
                child.end()

    def _give(self) -> None:
        """Give jobs to processes: a lost one if nothing else is at work, and others if none is lost."""
        if self._lost and not self._busy:
            self._begin(self._start_again(), self._lost.popleft(), is_second=True)
        elif not self._lost and not any(attempt.is_second for attempt in self._busy.values()):
            while self._waiting and len(self._busy) < self._processes:
                self._begin(self._idle.pop() if self._idle else self._start(), self._waiting.popleft())

    def _begin(self, child: Child, index: int, *, is_second: bool = False) -> None:
        self._busy[child.pipe] = _Attempt(child, index, is_second)
        with contextlib.suppress(OSError):  # it died; reading from the pipe will show this
            child.pipe.send(self._jobs[index])

    def _taken(self, pipe: Any, crashed: Callable[[Any, str], Any]) -> Iterator[tuple[int, Any]]:
        """The result in a message of a process; its first one says that it is ready."""
        child, index, is_second = self._busy[pipe]
        try:
            is_result, content = pipe.recv()
        except (EOFError, OSError):
            del self._busy[pipe]
            death = child.death()
            if not self._is_ready:
                raise RuntimeError(
                    "worker processes end as soon as they are started; a script that asks for them needs "
                    'if __name__ == "__main__": around what it does, or jobs=1'
                ) from None
            if is_second:
                yield index, crashed(self._jobs[index], _ending(death))
            else:
                self._lost.append(index)
            return
        self._is_ready = True
        if is_result:
            del self._busy[pipe]
            if self._waiting and not is_second:
                self._idle.append(child)
            else:
                child.leave()
            yield index, content


def _ending(death: Death) -> str:
    cause = ", as the system does when memory runs out" if death.status == -getattr(signal, "SIGKILL", 0) else ""
    return (
        f"the process that worked on it died twice, alone the second time: {death.text}{cause}; "
        "please report this with the model"
    )


def _serve(pipe: Any, work: Callable[..., Any]) -> None:
    """Do the jobs that come through the pipe."""
    pipe.send((False, None))
    while True:
        pipe.send((True, work(pipe.recv())))
