"""What the memo learned, kept for later runs.

A run takes the memory for runs of its kind and returns it at the end. So two runs never use the same memory at once,
even in different threads.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from reducelower.legalization.memo.reading import Key
from reducelower.scope.values import Values

__all__ = ["Memory", "forget", "memory_for"]

_KINDS = 4
"""How many kinds of runs are remembered; the least recent is dropped."""

_OUTCOMES = 2000
_BYTES = 16 << 20
"""The most bytes to keep for one kind of run; a memory that has grown larger is dropped."""


class Memory:
    """What runs of one kind learned: outcomes by stage, opset version and way to add constants; numbers of values."""

    def __init__(self) -> None:
        self.places: dict[tuple[str, int, bool, bool, bool], dict[Key, Any]] = {}
        self.values = Values()
        self.outcomes = 0


_kept: dict[Hashable, Memory] = {}
_lock = Lock()


@contextmanager
def memory_for(kind: Hashable) -> Iterator[Memory]:
    """The memory for runs of a kind, for the duration of one run.

    The kind is everything that determines results apart from the questions about nodes; None keeps nothing.
    """
    with _lock:
        memory = _kept.pop(kind, None) or Memory()
    try:
        yield memory
    finally:
        if kind is not None and memory.outcomes <= _OUTCOMES and memory.values.size <= _BYTES:
            with _lock:
                _kept[kind] = memory
                while len(_kept) > _KINDS:
                    del _kept[next(iter(_kept))]


def forget() -> None:
    """Drop all memories."""
    with _lock:
        _kept.clear()
