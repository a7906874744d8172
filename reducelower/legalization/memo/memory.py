"""What runs learned about nodes, kept for the runs that follow.

A run takes what is kept for runs of its kind and puts it back when it is done. So no two runs use it at once, whatever
threads they are in.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeAlias

from reducelower.legalization.memo.reading import Signature
from reducelower.scope.values import Values

__all__ = ["Memory", "Places", "forget", "kept"]

Places: TypeAlias = "dict[Signature, dict[bytes, Any]]"
"""What is known of nodes, by their signature, and operator and attributes."""

_KINDS = 4
"""Kinds of runs that something is kept for, those of late."""

_OUTCOMES = 2000
_BYTES = 16 << 20
"""What is kept for a kind of run at most; what has grown larger is dropped, and learned anew."""


class Memory:
    """What is known after some runs of a kind: outcomes, by stage and opset version, and numbers of values."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, int], Places] = {}
        self.values = Values()
        self.outcomes = 0


_kept: dict[Hashable, Memory] = {}
_lock = Lock()


@contextmanager
def kept(kind: Hashable) -> Iterator[Memory]:
    """What is kept for runs of a kind, for as long as one runs.

    The kind is all that decides what becomes of nodes, beside what is asked about them; None where nothing is kept.
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
    """Drop what is kept, so that the next runs begin with nothing known."""
    with _lock:
        _kept.clear()
