"""Ends runs that take too long, with one thread for all of them: starting a thread takes longer than most runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["terminated_after"]

_INTERVAL = 0.05
"""Seconds between two looks at the runs that take place."""

_starting = threading.Lock()
_running: dict[int, tuple[float, Any]] = {}
_watchdog: threading.Thread | None = None


@contextmanager
def terminated_after(options: Any, seconds: float | None) -> Iterator[None]:
    """Within the block, set ``options.terminate`` of an ``onnxruntime.RunOptions`` when the time is over."""
    if seconds is None:
        yield
        return
    if seconds <= 0:  # the run could be over before the thread is awake
        options.terminate = True
    _running[id(options)] = time.monotonic() + seconds, options
    if _watchdog is None or not _watchdog.is_alive():  # a forked process does not have the thread
        _start()
    try:
        yield
    finally:
        del _running[id(options)]


def _start() -> None:
    global _watchdog
    with _starting:
        if _watchdog is None or not _watchdog.is_alive():
            _watchdog = threading.Thread(target=_watch, name="reducelower deadlines", daemon=True)
            _watchdog.start()


def _watch() -> None:
    while True:
        for deadline, options in list(_running.values()):
            if deadline <= time.monotonic():
                options.terminate = True
        time.sleep(_INTERVAL)
