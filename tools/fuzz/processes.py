"""Run cases in another process, because a runtime may crash on one."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from reducelower.batch.processes import run_in_processes
from tools.fuzz.drawing import NotDrawableError
from tools.fuzz.generating import generate
from tools.fuzz.judging import judge, judge_source
from tools.fuzz.showing import shown
from tools.fuzz.shrinking import shrink
from tools.node_cases import cases

__all__ = ["Result", "results", "survived"]

_SECONDS = 240
"""Seconds that a case may take; a busy machine needs a multiple of the usual second."""


@dataclass(frozen=True)
class Result:
    """The outcome of one case.

    Attributes:
        number: its number in the seed.
        kind: a kind of verdict, ``not drawn``, ``source ends the process`` or ``death``.
        detail: more about it.
        name: a description of the case.
        text: the smallest case that shows a finding.
    """

    number: int
    kind: str
    detail: str = ""
    name: str = ""
    text: str = ""


def results(kind: str, seed: int, start: int, count: int, *, shrinks: bool = True) -> Iterator[Result]:
    """Run cases one after another and yield their outcomes.

    Args:
        kind: kind of case, of `generating.KINDS`.
        seed: their seed.
        start: number of the first.
        count: how many.
        shrinks: whether to look for a smaller case after a finding.
    """
    cases()  # read once, so that every process that is forked has them
    work = partial(_result, kind, seed, shrinks=shrinks)
    return survived(work, partial(_source_alone, kind, seed), range(start, start + count))


def survived(work: Callable[[int], Result], source_alone: Callable[[int], Result], numbers: range) -> Iterator[Result]:
    """The result of each number; if the process dies on it, that of its source alone, as a source may be the cause."""
    return run_in_processes(
        work, numbers, 1, lambda number, how: Result(number, "source ends the process", how), again=source_alone
    )


def _result(kind: str, seed: int, number: int, *, shrinks: bool) -> Result:
    _end_after(_SECONDS)
    try:
        case = generate(kind, seed, number)
    except NotDrawableError as error:
        return Result(number, "not drawn", str(error))
    verdict = judge(case)
    text = ""
    if verdict.is_finding:
        _end_after(_SECONDS)
        text = shown(shrink(case) if shrinks else case)
    _end_after(0)
    return Result(number, verdict.kind, verdict.detail, case.name, text)


def _source_alone(kind: str, seed: int, number: int) -> Result:
    """Only draw a case and run its source; the process dies again if that is what it died of."""
    _end_after(_SECONDS)
    case = generate(kind, seed, number)
    judge_source(case)
    _end_after(0)
    return Result(number, "death", "the process ended, or took too long", case.name, shown(case))


def _end_after(seconds: int) -> None:
    if hasattr(signal, "alarm"):
        signal.alarm(seconds)
