"""What is left of the time that verification may take."""

from __future__ import annotations

import time

from reducelower.model.text import counted
from reducelower.verification.running.source import OutOfTimeError

__all__ = ["Clock"]


class Clock:
    """What is left of the budget."""

    def __init__(self, budget: float | None, left: float | None = None) -> None:
        """Start counting `budget` seconds, or what is `left` of them; None for no limit."""
        self._end = None if budget is None else time.monotonic() + (budget if left is None else left)
        self.budget = budget

    def part(self, share: float) -> Clock:
        """A clock that is over once a share of what is left is used up."""
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
        """How many sets of inputs it lasted for, as a sentence."""
        return f"The budget of {self.budget:g} s allowed {counted(count, 'set')} of inputs."

    def check(self) -> None:
        """Raise OutOfTimeError when the budget is used up."""
        if self.over:
            raise OutOfTimeError(f"the budget of {self.budget:g} s is used up", unsupported=True)
