"""A progress bar for long work on a terminal; elsewhere nothing, and nothing imported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

__all__ = ["progress"]

_FEW = 4


@contextmanager
def progress(what: str, total: int | None, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Show how far the work is, where there is enough of it.

    Args:
        what: what is counted, such as ``models``.
        total: how many there are; None where only the work itself will tell.
        quiet: show nothing.

    Yields:
        A function to call with (done, total).
    """
    with ExitStack() as stack:
        update: Callable[[int], None] | None = None

        def advance(done: int, total: int) -> None:
            nonlocal update
            if update is None and total >= _FEW and not quiet and sys.stderr.isatty():
                update = stack.enter_context(_bar(what, total))
            if update is not None:
                update(done)

        if total is not None:
            advance(0, total)
        yield advance


@contextmanager
def _bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=True) as bars:
        bar = bars.add_task(what, total=total)
        yield lambda done: bars.update(bar, completed=done)
