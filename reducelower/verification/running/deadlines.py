"""Ends runs that take too long, with one thread for all of them: starting a thread takes longer than most runs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["terminated_after"]

_LONGEST = 3600.0
"""Seconds that the thread sleeps at most; systems have limits of their own, which deadlines may exceed."""


@contextmanager
def terminated_after(options: Any, seconds: float | None) -> Iterator[None]:
    """Within the block, set ``options.terminate`` of an ``onnxruntime.RunOptions`` when the time is over."""
    if seconds is None:
        yield
        return
    if seconds <= 0:  # the run could be over before the thread is awake
        options.terminate = True
        yield
        return
    _watchdog.watch(options, time.monotonic() + seconds)
    try:
        yield
    finally:
        _watchdog.leave(options)


class _Watchdog:
    """A thread that sleeps until the earliest deadline it was told of, whether or not that run is over by then."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._deadlines: dict[int, tuple[float, Any]] = {}
        self._wakes = float("inf")
        self._thread: threading.Thread | None = None

    def watch(self, options: Any, deadline: float) -> None:
        with self._changed:
            self._deadlines[id(options)] = deadline, options
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="reducelower deadlines", daemon=True)
                self._thread.start()
            if deadline < self._wakes:
                self._changed.notify()

    def leave(self, options: Any) -> None:
        with self._changed:
            self._deadlines.pop(id(options), None)

    def _run(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                for key, (deadline, options) in list(self._deadlines.items()):
                    if deadline <= now:
                        options.terminate = True
                        del self._deadlines[key]
                self._wakes = min((now + _LONGEST, *(deadline for deadline, _ in self._deadlines.values())))
                self._changed.wait(self._wakes - now)


_watchdog = _Watchdog()


def _start_afresh() -> None:
    """A forked process has the lock, perhaps held, but not the thread."""
    global _watchdog
    _watchdog = _Watchdog()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_afresh)
