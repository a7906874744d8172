"""One piece of work of a batch: plain facts that travel to worker processes."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Task"]


@dataclass(frozen=True)
class Task:
    """One model and where its output goes.

    Attributes:
        source: the model, a path or a URL.
        output: its output, a path or a URL.
        make_folder: a missing folder of the output is made.
        record: file that says what an output was made from, for runs that resume; empty when none is kept.
    """

    source: str
    output: str = ""
    make_folder: bool = False
    record: str = ""
