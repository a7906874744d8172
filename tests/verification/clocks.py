"""A clock for tests, by which every look takes a second."""

from __future__ import annotations

from reducelower.verification.running.clock import Clock


class Looked(Clock):
    """It moves whenever it is asked whether the time is over: where regions are cut, and at every set of inputs."""

    gone = 0

    @property
    def left(self) -> float | None:
        return None if self.budget is None else max(self.budget - self.gone, 0.0)

    def check(self) -> None:
        super().check()
        self.gone += 1
