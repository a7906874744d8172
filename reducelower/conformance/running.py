"""Run cases in parallel workers, and store each result at once."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from reducelower.conformance.case import Case
from reducelower.conformance.judging import Verdict, judge
from reducelower.conformance.process import Answer, Subject, UnusableError, Worker
from reducelower.conformance.results import Result, read_results, results_of

__all__ = ["AS_USUAL", "How", "Probed", "Workers", "probe"]

_STARTS = 5
"""How often a worker may fail to start before the runtime is given up."""


class Workers(AbstractContextManager["Workers"]):
    """The worker processes of a runtime, which serve all that is run on it: starting one may take long.

    Attributes:
        name: that of the runtime, for the results.
    """

    def __init__(self, subject: Subject, time_limit: float = 60.0, jobs: int = 1) -> None:
        """Take the runtime, the seconds that a model may take, and how many processes run side by side."""
        self.name = subject.name
        self._each = [Worker(subject, time_limit) for _ in range(jobs)]

    def __exit__(self, *error: object) -> None:
        for each in self._each:
            each.__exit__(*error)

    @property
    def first(self) -> Worker:
        """One of them, which runs.

        Raises:
            UnusableError: the runtime cannot be run at all.
        """
        self._each[0].start()
        return self._each[0]

    def answers(self, cases: Sequence[Case]) -> Generator[Answer, None, None]:
        """Run cases, and yield the answers in their order.

        Raises:
            UnusableError: the runtime cannot be run at all.
        """
        with ThreadPoolExecutor(len(self._each)) as pool:
            try:
                yield from pool.map(self._runner(), cases)
            except BaseException:
                for each in self._each:
                    each.kill()  # an interrupt does not wait for the running cases
                raise
            finally:
                pool.shutdown(cancel_futures=True)

    def _runner(self) -> Callable[[Case], Answer]:
        """A function that runs a case in the next worker that is free."""
        idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        for each in self._each:
            idle.put(each)
        failed = threading.Semaphore(_STARTS)

        def run(case: Case) -> Answer:
            worker = idle.get()
            try:
                while True:
                    try:
                        return worker.run(case.model, case.inputs)
                    except UnusableError:
                        if not failed.acquire(blocking=False):
                            raise
            finally:
                idle.put(worker)

        return run


@dataclass(frozen=True)
class How:
    """What is done with the answers.

    Attributes:
        keep: file that results are added to; cases that it has results for are not run again.
        advance: called with the number of models done and the total.
        judge: decides whether an answer is right.
    """

    keep: Path | None = None
    advance: Callable[[int, int], None] = lambda done, total: None
    judge: Callable[[Case, Answer, float], Verdict] = judge


@dataclass(frozen=True)
class Probed:
    """A probed runtime.

    Attributes:
        runtime: its name.
        version: its version; empty if unknown.
        cases: the cases.
        results: one for each case, in their order.
    """

    runtime: str
    version: str
    cases: tuple[Case, ...]
    results: tuple[Result, ...]


AS_USUAL = How()
"""Answers are judged, and nothing is kept."""


def probe(
    workers: Workers,
    cases: Sequence[Case],
    how: How = AS_USUAL,
    *,
    version: str | None = None,
    tolerance: float | None = None,
) -> Probed:
    """Run every case on a runtime.

    Args:
        workers: those of the runtime.
        cases: the cases.
        how: what is done with the answers.
        version: its version, if the runtime does not say it.
        tolerance: see `judge`; None for what the runtime's adapter asks for.

    Raises:
        UnusableError: the runtime cannot be run at all.
        ValueError: the file of results holds something else.
        OSError: the file cannot be read or written.
    """
    version = version or workers.first.version
    tolerance = workers.first.tolerance if tolerance is None else tolerance
    kept = read_results(how.keep) if how.keep and how.keep.exists() else ()
    known = dict(results_of(cases, workers.name, version, kept, tolerance))
    missing = [case for case in cases if case.name not in known]
    done = len(cases) - len(missing)
    how.advance(done, len(cases))
    with ExitStack() as stack:
        file = None
        if how.keep is not None:
            _end_last_line(how.keep)
            file = stack.enter_context(how.keep.open("a", encoding="utf-8"))
        answers = stack.enter_context(closing(workers.answers(missing)))
        for case, answer in zip(missing, answers, strict=True):
            result = Result.of(case, workers.name, version, how.judge(case, answer, tolerance), tolerance)
            known[case.name] = result
            if file is not None:
                file.write(result.line())
                file.flush()
            done += 1
            how.advance(done, len(cases))
    return Probed(workers.name, version, tuple(cases), tuple(known[case.name] for case in cases))


def _end_last_line(path: Path) -> None:
    """Cut off an unfinished last line."""
    if not path.exists():
        return
    data = path.read_bytes()
    if data and not data.endswith(b"\n"):
        path.write_bytes(data[: data.rfind(b"\n") + 1])
