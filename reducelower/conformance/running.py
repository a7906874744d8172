"""Run cases in parallel workers, and store each result at once."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from reducelower.conformance.case import Case
from reducelower.conformance.judging import Verdict, judge
from reducelower.conformance.process import Answer, Subject, UnusableError, Worker
from reducelower.conformance.results import Result, read_results, results_of

__all__ = ["AS_USUAL", "How", "Probed", "probe"]

_STARTS = 5
"""How often a worker may fail to start before the runtime is given up."""


@dataclass(frozen=True)
class How:
    """How models are run.

    Attributes:
        time_limit: seconds for one model.
        jobs: number of parallel workers.
        keep: file that results are added to; cases that it has results for are not run again.
        advance: called with the number of models done and the total.
        judge: decides whether an answer is right.
    """

    time_limit: float = 60.0
    jobs: int = 1
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
"""One model after the other, up to a minute each."""


def probe(
    subject: Subject,
    cases: Sequence[Case],
    how: How = AS_USUAL,
    *,
    version: str | None = None,
    tolerance: float | None = None,
) -> Probed:
    """Run every case on a runtime.

    Args:
        subject: the runtime.
        cases: the cases.
        how: how they are run.
        version: its version, if the runtime does not say it.
        tolerance: see `judge`; None for what the runtime's adapter asks for.

    Raises:
        UnusableError: the runtime cannot be run at all.
        ValueError: the file of results holds something else.
        OSError: the file cannot be read or written.
    """
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(subject, how.time_limit)) for _ in range(how.jobs)]
        workers[0].start()
        version = version or workers[0].version
        tolerance = workers[0].tolerance if tolerance is None else tolerance
        kept = read_results(how.keep) if how.keep and how.keep.exists() else ()
        known = dict(results_of(cases, subject.name, version, kept, tolerance))
        missing = [case for case in cases if case.name not in known]
        done = len(cases) - len(missing)
        how.advance(done, len(cases))
        file = None
        if how.keep is not None:
            _end_last_line(how.keep)
            file = stack.enter_context(how.keep.open("a", encoding="utf-8"))
        for case, verdict in _verdicts(workers, missing, tolerance, how):
            result = Result.of(case, subject.name, version, verdict, tolerance)
            known[case.name] = result
            if file is not None:
                file.write(result.line())
                file.flush()
            done += 1
            how.advance(done, len(cases))
    return Probed(subject.name, version, tuple(cases), tuple(known[case.name] for case in cases))


def _verdicts(
    workers: Sequence[Worker], cases: Sequence[Case], tolerance: float, how: How
) -> Iterator[tuple[Case, Verdict]]:
    """Run cases and judge them with a tolerance (see `judge`), in their order.

    Raises:
        UnusableError: the runtime cannot be run at all.
    """
    with ThreadPoolExecutor(how.jobs) as pool:
        try:
            for case, answer in zip(cases, pool.map(_runner(workers), cases), strict=True):
                yield case, how.judge(case, answer, tolerance)
        except BaseException:
            for worker in workers:
                worker.kill()  # an interrupt does not wait for the running cases
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def _runner(workers: Iterable[Worker]) -> Callable[[Case], Answer]:
    """A function that runs a case in the next worker that is free."""
    idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
    for each in workers:
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


def _end_last_line(path: Path) -> None:
    """Cut off an unfinished last line."""
    if not path.exists():
        return
    data = path.read_bytes()
    if data and not data.endswith(b"\n"):
        path.write_bytes(data[: data.rfind(b"\n") + 1])
