"""Clocks for budgets of time, and the end of runs that take longer."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from reducelower.text import counted
from reducelower.verification.running.source import OutOfTimeError

__all__ = ["Clock", "terminated_after"]

_TICK = 0.02  # seconds


class Clock:
    """A budget of time, and what is left of it."""

    def __init__(self, budget: float | None, left: float | None = None) -> None:
        """Start a budget in seconds, of which `left` may be left; None means no limit."""
        self._end = None if budget is None else time.monotonic() + (budget if left is None else left)
        self.budget = budget

    def part(self, share: float) -> Clock:
        """A clock for a share of the time that is left."""
        return Clock(self.budget, None if self.left is None else share * self.left)

    @property
    def left(self) -> float | None:
        """Seconds left; None when there is no limit."""
        return None if self._end is None else max(self._end - time.monotonic(), 0.0)

    @property
    def over(self) -> bool:
        """Whether the budget is used up."""
        return self.left == 0.0

    def allowed(self, count: int) -> str:
        """A sentence that says how many sets of inputs the budget was enough for."""
        return f"The budget of {self.budget:g} s allowed {counted(count, 'set')} of inputs."

    @property
    def error(self) -> OutOfTimeError:
        """What to raise when the budget is used up."""
        return OutOfTimeError(f"the budget of {self.budget:g} s is used up")

    def check(self) -> None:
        """Raise OutOfTimeError when the budget is used up."""
        if self.over:
            raise self.error


class _Watch:
    """Stops runs that take too long. One thread looks at all of them: to start one takes ten times as long as a run."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.ends: dict[int, tuple[float, Any]] = {}
        self.is_awake = False

    def add(self, options: Any, seconds: float) -> None:
        """Set ``terminate`` of these options after these seconds."""
        with self.lock:
            self.ends[id(options)] = time.monotonic() + seconds, options
            if not self.is_awake:
                self.is_awake = True
                threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while self.is_awake:
            time.sleep(_TICK)
            with self.lock:
                for end, options in self.ends.values():
                    if time.monotonic() >= end:
                        options.terminate = True
                self.is_awake = bool(self.ends)


_watch = _Watch()


def _renew() -> None:
    global _watch
    _watch = _Watch()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)  # the child lacks the thread


@contextmanager
def terminated_after(options: Any, seconds: float | None) -> Iterator[None]:
    """Set ``terminate`` of these ``onnxruntime.RunOptions`` if the block takes longer than these seconds."""
    if seconds is None:
        yield
        return
    options.terminate = seconds <= 0  # the run could be over before a thread is awake
    watch = _watch
    watch.add(options, seconds)
    try:
        yield
    finally:
        with watch.lock:
            watch.ends.pop(id(options), None)
