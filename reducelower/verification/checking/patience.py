"""How many regions that differ are looked at in detail: among hundreds of them, one more tells nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from reducelower.verification.regions.cut import Region

__all__ = ["MANY", "Patience"]

MANY = 8  # regions that differ: so few are looked at in any case
_MOST = 32


class Patience:
    """Counts the regions of one alignment that differ with their surroundings, too.

    The sites of a plan are counted by themselves: that they hold cannot be shown otherwise. Any other claim is dropped
    where it does not hold, and what follows from it is looked at in a larger region.
    """

    def __init__(self, are_apart: Callable[[], bool] = lambda: False) -> None:
        """`are_apart` tells, when asked, whether the whole models clearly differ."""
        self._are_apart = are_apart
        self._failed: Counter[bool] = Counter()

    def failed(self, region: Region) -> None:
        """Count a region that was looked at."""
        self._failed[_is_guess(region)] += 1

    def ends(self, region: Region) -> bool:
        """Whether enough were looked at to leave out this one."""
        count = self._failed[_is_guess(region)]
        return count >= _MOST or (count >= MANY and _is_guess(region) and self._are_apart())


def _is_guess(region: Region) -> bool:
    return region.claim.site is None
