"""Results of a probe, as lines of JSON, so that a probe can be resumed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from reducelower.conformance.case import Case
from reducelower.conformance.judging import Verdict

__all__ = ["Result", "read_results"]


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
