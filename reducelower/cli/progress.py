"""Show the progress of long work on a terminal; without one, show and import nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress"]


@contextmanager
def progress(noun: str, total: int, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Show on a terminal how much is done and how long the rest takes; yields a function of (done, total)."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress

    columns = (*Progress.get_default_columns(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=True) as bars:
        bar = bars.add_task(noun, total=total)
        yield lambda done, total: bars.update(bar, completed=done)
