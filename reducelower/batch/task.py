"""One piece of work of a batch: plain facts that travel to worker processes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["FORKS", "OnStep", "Step", "Task"]

FORKS = sys.platform == "linux"
"""Whether processes are forked, which have onnx imported already; elsewhere than on Linux that is not safe."""

Step = Literal["read", "rewrite", "check", "verify", "write"]
"""What is done with a model, in this order."""

OnStep: TypeAlias = Callable[[Step, int, int], None]
"""Called with the step, and with how much of it is done and how much there is; both 0 where nothing is counted."""


@dataclass(frozen=True)
class Task:
    """One model and where its output goes, each a path or a URL.

    Attributes:
        make_folder: whether a missing folder of the output is made.
        record: file that says what an output was made from, for runs that resume; empty where none is kept.
    """

    source: str
    output: str = ""
    make_folder: bool = False
    record: str = ""
