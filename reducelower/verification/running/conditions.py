"""What holds for every run of a verification: where it takes place, how much it may take, and what is not fed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

__all__ = ["CPU", "DEFAULT_MEMORY", "Conditions", "conditions", "under"]

CPU = "CPUExecutionProvider"

DEFAULT_MEMORY = 1.0
"""GB that verification takes at most, unless more are allowed."""


@dataclass(frozen=True)
class Conditions:
    """The conditions that runs are made under.

    Attributes:
        provider: execution provider of onnxruntime, as it spells it.
        memory: GB that a run may take; None for no limit.
        feeds_empty: whether tensors without elements are fed: not where a conversion assumes that there are none.
        isolates: whether models are run each in a process of its own, where processes can be forked.
    """

    provider: str = CPU
    memory: float | None = DEFAULT_MEMORY
    feeds_empty: bool = True
    isolates: bool = False


_now: ContextVar[Conditions] = ContextVar("conditions", default=Conditions())  # noqa: B039  # it is frozen


def conditions() -> Conditions:
    """What holds now."""
    return _now.get()


@contextmanager
def under(**changes: Any) -> Iterator[None]:
    """Change some of the `Conditions` for as long as this lasts."""
    token = _now.set(replace(_now.get(), **changes))
    try:
        yield
    finally:
        _now.reset(token)
