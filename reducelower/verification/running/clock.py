"""Clocks for budgets of time."""

from __future__ import annotations

import time

from reducelower.model.text import counted
from reducelower.verification.running.source import OutOfTimeError

__all__ = ["Clock"]


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

    def check(self) -> None:
        """Raise OutOfTimeError when the budget is used up."""
        if self.over:
            raise OutOfTimeError(f"the budget of {self.budget:g} s is used up", unsupported=True)
