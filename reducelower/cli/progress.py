"""Show the progress of long work on a terminal; elsewhere show and import nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Timer
from time import monotonic
from typing import Any

from reducelower.cli.console import message
from reducelower.pipeline.task import OnStep, Step

__all__ = ["progress", "steps"]

_FEW = 4
_SOON = 0.5
"""Work that takes fewer seconds shows no progress."""

_WORDS: dict[Step, str] = {
    "read": "reading",
    "rewrite": "rewriting",
    "check": "checking",
    "verify": "verifying",
    "write": "writing",
}


@contextmanager
def progress(what: str, total: int, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Show the progress and rate of work on many things on a terminal; the function yielded takes (done, total)."""
    if total < _FEW or not _is_shown(quiet):
        yield lambda done, total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    rate = TextColumn("{task.fields[rate]}")
    with _bars(BarColumn(), MofNCompleteColumn(), rate, TimeElapsedColumn(), TimeRemainingColumn()) as bars:
        start, bar = monotonic(), bars.add_task(what, total=total, rate="")

        def advance(done: int, total: int) -> None:
            seconds = max(monotonic() - start, 1e-6)
            bars.update(bar, completed=done, rate=f"{done / seconds:.3g} {what}/s" if done else "")

        yield advance


@contextmanager
def steps(*, quiet: bool, verbose: bool = False) -> Iterator[OnStep | None]:
    """Show the step that work on one model is at; with `verbose`, after long work what each took.

    It yields None where nothing is shown.
    """
    if not _is_shown(quiet):
        yield None
        return
    shown = _Steps()
    try:
        yield shown.on_step
    finally:
        shown.close(verbose=verbose)


class _Steps:
    """The steps so far; they are shown once the work has taken a while."""

    def __init__(self) -> None:
        self._started: dict[Step, float] = {}
        self._counts = (0, 0)
        self._stack = ExitStack()
        self._show: Callable[[], None] | None = None
        self._timer = Timer(_SOON, self._open)
        self._timer.daemon = True
        self._timer.start()

    def on_step(self, step: Step, done: int, total: int) -> None:
        """Note that a step begins or goes on."""
        self._started.setdefault(step, monotonic())
        self._counts = done, total
        if self._show is not None:
            self._show()

    def _open(self) -> None:
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

        bars = self._stack.enter_context(_bars(BarColumn(), TextColumn("{task.fields[count]}"), TimeElapsedColumn()))
        rows: dict[Step, Any] = {}

        def show() -> None:
            for step in list(self._started):
                if step not in rows:
                    for row in rows.values():
                        bars.update(row, visible=False)
                    rows[step] = bars.add_task(_WORDS[step], total=None, count="")
            done, total = self._counts
            if rows:
                bars.update(list(rows.values())[-1], completed=done, total=total or None, count=_count(done, total))

        self._show = show
        show()

    def close(self, *, verbose: bool) -> None:
        """Remove the steps from the terminal, and print how long each took if they were shown and that is wanted."""
        self._timer.cancel()
        self._timer.join()
        self._stack.close()
        if self._show is None or not verbose:
            return
        ends = [*list(self._started.values())[1:], monotonic()]
        took = [(step, end - start) for (step, start), end in zip(self._started.items(), ends, strict=True)]

        message("  " + ", ".join(f"{step} {seconds:.1f} s" for step, seconds in took))


def _count(done: int, total: int) -> str:
    """How much of a step is done; bytes as such."""
    if not total:
        return ""
    return f"{done}/{total}" if total < 1 << 20 else f"{done >> 20}/{total >> 20} MiB"


def _is_shown(quiet: bool) -> bool:
    return not quiet and sys.stderr.isatty()


def _bars(*columns: Any) -> Any:
    """Bars on standard error, removed when the work is done."""
    from rich.console import Console
    from rich.progress import Progress, TextColumn

    return Progress(
        TextColumn("{task.description}"), *columns, console=Console(stderr=True), transient=True, redirect_stdout=True
    )
