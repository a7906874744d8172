"""Settings for every run of a verification: execution provider, memory, empty tensors, isolation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

__all__ = ["CPU", "DEFAULT_MEMORY", "Conditions", "conditions", "under"]

CPU = "CPUExecutionProvider"

DEFAULT_MEMORY = 1.0
"""GB that verification takes at most by default."""


@dataclass(frozen=True)
class Conditions:
    """The settings of runs.

    Attributes:
        provider: execution provider of onnxruntime, as it spells it.
        memory: GB that a run may take; None for no limit.
        feeds_empty: whether empty tensors are fed: not if a conversion assumes that there are none.
        isolates: whether each model runs in a process of its own, where processes can be forked.
    """

    provider: str = CPU
    memory: float | None = DEFAULT_MEMORY
    feeds_empty: bool = True
    isolates: bool = False


_current: ContextVar[Conditions] = ContextVar("conditions", default=Conditions())  # noqa: B039  # it is frozen


def conditions() -> Conditions:
    """The current settings."""
    return _current.get()


@contextmanager
def under(**changes: Any) -> Iterator[None]:
    """Change some of the `Conditions` within the block."""
    token = _current.set(replace(_current.get(), **changes))
    try:
        yield
    finally:
        _current.reset(token)
