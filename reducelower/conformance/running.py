"""Run cases in a worker process, and store each result at once, as a line of JSON, so that a probe can be resumed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from reducelower.conformance.case import Case
from reducelower.conformance.judging import Verdict, judge
from reducelower.conformance.process import Answer, Worker

__all__ = ["AS_USUAL", "How", "Probed", "Result", "probe", "read_results"]


@dataclass(frozen=True, kw_only=True)
class Result(Verdict):
    """The verdict on a case for one version of a runtime, and the tolerance used.

    The digest is `Case.digest`.
    """

    case: str
    digest: str
    runtime: str
    version: str
    tolerance: float = 0.0

    @classmethod
    def of(cls, case: Case, runtime: str, version: str, verdict: Verdict, tolerance: float = 0.0) -> Result:
        """The result of a case."""
        identity = {"case": case.name, "digest": case.digest, "runtime": runtime, "version": version}
        return cls(verdict.word, verdict.kind, verdict.detail, **identity, tolerance=tolerance)

    def line(self) -> str:
        """The result as a line of JSON."""
        return json.dumps(asdict(self), ensure_ascii=False) + "\n"


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


def probe(worker: Worker, cases: Sequence[Case], how: How = AS_USUAL) -> Probed:
    """Run every case on a runtime.

    Raises:
        UnusableError: the runtime cannot be run at all.
        ValueError: the file does not contain results.
        OSError: the file cannot be read or written.
    """
    worker.start()
    version, tolerance = worker.version, worker.tolerance
    kept = [] if how.keep is None else _kept(how.keep)
    of_this = {
        (result.case, result.digest): result
        for result in kept
        if (result.runtime, result.version, result.tolerance) == (worker.name, version, tolerance)
    }
    done = {case.name: of_this[key] for case in cases if (key := (case.name, case.digest)) in of_this}
    how.advance(len(done), len(cases))
    for case in cases:
        if case.name in done:
            continue
        answer = worker.run(case.model, case.inputs)
        result = Result.of(case, worker.name, version, how.judge(case, answer, tolerance), tolerance)
        done[case.name] = result
        if how.keep is not None:
            with how.keep.open("a", encoding="utf-8") as file:
                file.write(result.line())
        how.advance(len(done), len(cases))
    return Probed(worker.name, version, tuple(cases), tuple(done[case.name] for case in cases))


def _kept(path: Path) -> list[Result]:
    """The results in a file that more will be added to; an incomplete last line is cut off."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        return []
    results = list(read_results(path))
    data = path.read_bytes()
    path.write_bytes(data[: data.rfind(b"\n") + 1])
    return results


def read_results(path: Path) -> Iterator[Result]:
    """The results in a file; an incomplete last line is left out.

    Raises:
        ValueError: a whole line is not a result.
    """
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith("\n"):
                return
            try:
                yield Result(**json.loads(line))
            except (TypeError, ValueError):
                raise ValueError(f"{path}: line {number} is not a result of a probe") from None
