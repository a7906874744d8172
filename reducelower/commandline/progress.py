"""A progress bar for long work on a terminal; elsewhere nothing, and nothing imported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress"]

_FEW = 4


@contextmanager
def progress(what: str, total: int | None, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Show how far the work is.

    Args:
        what: what is counted, such as ``models``.
        total: how many there are; None where only the work itself will tell.
        quiet: show nothing.

    Yields:
        A function to call with (done, total).
    """
    if quiet or (total is not None and total < _FEW) or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=True) as bars:
        bar = bars.add_task(what, total=total, visible=total is not None)
        yield lambda done, total: bars.update(bar, completed=done, total=total, visible=total >= _FEW)
