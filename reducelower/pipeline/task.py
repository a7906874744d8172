"""One job of a batch, as plain data that can be sent to workers."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Task"]


@dataclass(frozen=True)
class Task:
    """The paths of a model and of its output.

    Attributes:
        record: file with the origin of the output, for runs that resume; empty if none is kept.
    """

    source: str
    output: str = ""
    record: str = ""
