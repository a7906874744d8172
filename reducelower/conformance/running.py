"""Run cases in a worker process, and store each result at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from reducelower.conformance.case import Case
from reducelower.conformance.judging import Verdict, judge
from reducelower.conformance.process import Answer, Worker
from reducelower.conformance.results import Result, read_results, results_of

__all__ = ["AS_USUAL", "How", "Probed", "probe"]


@dataclass(frozen=True)
class How:
    """What to do with the answers.

    Attributes:
        keep: a file to add results to; cases with results in it are not run again.
        advance: called with the number of models done and the total.
        judge: decides whether an answer is right.
    """

    keep: Path | None = None
    advance: Callable[[int, int], None] = lambda done, total: None
    judge: Callable[[Case, Answer, float], Verdict] = judge


@dataclass(frozen=True)
class Probed:
    """A probed runtime, with the result of each case in order; the version is empty if unknown."""

    runtime: str
    version: str
    cases: tuple[Case, ...]
    results: tuple[Result, ...]


AS_USUAL = How()
"""Answers are judged, and nothing is kept."""


def probe(
    worker: Worker,
    cases: Sequence[Case],
    how: How = AS_USUAL,
    *,
    version: str | None = None,
    tolerance: float | None = None,
) -> Probed:
    """Run every case on a runtime.

    `version` is for a runtime that does not report its own. For `tolerance` see `judge`; the default is the adapter's.

    Raises:
        UnusableError: the runtime cannot be run at all.
        ValueError: the file does not contain results.
        OSError: the file cannot be read or written.
    """
    worker.start()
    version = version or worker.version
    tolerance = worker.tolerance if tolerance is None else tolerance
    stored = read_results(how.keep) if how.keep and how.keep.exists() else ()
    results = dict(results_of(cases, worker.name, version, stored, tolerance))
    missing = [case for case in cases if case.name not in results]
    done = len(cases) - len(missing)
    how.advance(done, len(cases))
    with ExitStack() as stack:
        file = None
        if how.keep is not None:
            _end_last_line(how.keep)
            how.keep.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(how.keep.open("a", encoding="utf-8"))
        for case in missing:
            answer = worker.run(case.model, case.inputs)
            result = Result.of(case, worker.name, version, how.judge(case, answer, tolerance), tolerance)
            results[case.name] = result
            if file is not None:
                file.write(result.line())
                file.flush()
            done += 1
            how.advance(done, len(cases))
    return Probed(worker.name, version, tuple(cases), tuple(results[case.name] for case in cases))


def _end_last_line(path: Path) -> None:
    """Cut off an incomplete last line."""
    if not path.exists():
        return
    data = path.read_bytes()
    if data and not data.endswith(b"\n"):
        path.write_bytes(data[: data.rfind(b"\n") + 1])
