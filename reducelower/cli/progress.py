"""Show the progress of long work on a terminal; without one, show and import nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from time import monotonic
from typing import Any

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
def progress(noun: str, total: int, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Show progress and rate on a terminal; yields a function of (done, total)."""
    if total < _FEW or not _is_shown(quiet):
        yield lambda done, total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    rate = TextColumn("{task.fields[rate]}")
    with _bars(BarColumn(), MofNCompleteColumn(), rate, TimeElapsedColumn(), TimeRemainingColumn()) as bars:
        start, bar = monotonic(), bars.add_task(noun, total=total, rate="")

        def advance(done: int, total: int) -> None:
            seconds = max(monotonic() - start, 1e-6)
            bars.update(bar, completed=done, rate=f"{done / seconds:.3g} {noun}/s" if done else "")

        yield advance


@contextmanager
def steps(*, quiet: bool) -> Iterator[OnStep | None]:
    """Show the current step for one model if it takes a while; yields None if nothing is shown."""
    if not _is_shown(quiet):
        yield None
        return
    start, update = monotonic(), list[Callable[..., None]]()
    with ExitStack() as stack:

        def on_step(step: Step, done: int, total: int) -> None:
            if monotonic() - start < _SOON:
                return
            if not update:
                from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

                count = TextColumn("{task.fields[count]}")
                bars = stack.enter_context(_bars(BarColumn(), count, TimeElapsedColumn()))
                update.append(partial(bars.update, bars.add_task("", total=None, count="")))
            text = f"{done}/{total}" if total else ""
            # Draw the start of a step at once: between two refreshes of rich, a short step would not be seen.
            update[0](description=_WORDS[step], completed=done, total=total or None, count=text, refresh=not done)

        yield on_step


def _is_shown(quiet: bool) -> bool:
    return not quiet and sys.stderr.isatty()


def _bars(*columns: Any) -> Any:
    """Bars on standard error, removed when the work is done."""
    from rich.console import Console
    from rich.progress import Progress, TextColumn

    return Progress(
        TextColumn("{task.description}"), *columns, console=Console(stderr=True), transient=True, redirect_stdout=True
    )
