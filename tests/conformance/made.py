"""Results of runtimes that fail where a function says so, without running anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from functools import cache
from pathlib import Path

from reducelower.conformance.case import Case
from reducelower.conformance.distilling import Distilled, distil
from reducelower.conformance.judging import Verdict
from reducelower.conformance.process import Subject
from reducelower.conformance.running import Probed, Result
from reducelower.conformance.suite import suite

DAY = date(2026, 11, 1)
RIGHT = Verdict("right")
WRONG = Verdict("wrong", "values", "1, expected 2")
REFUSED = Verdict("refused", "error", "NotImplementedError: not here")


def fake(function: str = "right") -> Subject:
    """A runtime of the fakes."""
    return Subject("fake", ("python", f"fakes:{function}", str(Path(__file__).parent)))


@cache
def everything() -> tuple[Case, ...]:
    return tuple(suite())


@cache
def _of(operators: tuple[str, ...]) -> tuple[Case, ...]:
    return tuple(suite(operators))


def reductions(*operators: str) -> list[Case]:
    """The cases of some operators, without working out those of all others."""
    return list(_of(operators))


def probed(cases: Sequence[Case], verdict: Callable[[Case], Verdict]) -> Probed:
    results = tuple(Result.of(case, "fake", "1.0", verdict(case)) for case in cases)
    return Probed("fake", "1.0", tuple(cases), results)


def distilled(cases: Sequence[Case], fails: Callable[[Case], bool], failure: Verdict = WRONG) -> Distilled:
    return distil(probed(cases, lambda case: failure if fails(case) else RIGHT), DAY)
