"""One job of a batch, as plain data that can be sent to workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["OnStep", "Step", "Task"]

Step = Literal["read", "rewrite", "check", "verify", "write"]
"""The steps of a conversion, in order."""

OnStep: TypeAlias = Callable[[Step, int, int], None]
"""Called with the step, the amount done, and the total; both are 0 for a step without counts."""


@dataclass(frozen=True)
class Task:
    """The paths of a model and of its output.

    Attributes:
        record: file with the origin of the output, for runs that resume; empty if none is kept.
    """

    source: str
    output: str = ""
    record: str = ""
