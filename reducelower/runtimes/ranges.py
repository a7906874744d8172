"""Sets of whole numbers as people write them: ``11-13, 18-``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Ranges"]

_PART = re.compile(r"(\d+)?(-)?(\d+)?")


@dataclass(frozen=True)
class Ranges:
    """Numbers from 0 on, as pairs of the first and the last one; None is no end."""

    pairs: tuple[tuple[int, int | None], ...]

    @classmethod
    def parse(cls, text: str) -> Ranges:
        """Read ``7``, ``7-17``, ``18-``, ``-12`` or several of them with commas between.

        Raises:
            ValueError: the text is none of these.
        """
        pairs = []
        for part in text.split(","):
            match = _PART.fullmatch(part.strip())
            first, dash, last = match.groups() if match else (None, None, None)
            if first is None and last is None:
                raise ValueError(f"{text!r} is not a range; write 13, 13-17, 18- or 11, 13-17")
            low = int(first or 0)
            high = low if dash is None else None if last is None else int(last)
            if high is not None and high < low:
                raise ValueError(f"{text!r} ends before it starts")
            pairs.append((low, high))
        return cls(tuple(pairs))

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Ranges:
        """The fewest ranges of exactly these numbers, which are in ascending order."""
        runs: list[tuple[int, int]] = []
        for number in numbers:
            joins = runs and runs[-1][1] == number - 1
            runs.append((runs.pop()[0], number) if joins else (number, number))
        return cls(tuple(runs))

    def __contains__(self, number: object) -> bool:
        """Whether a number lies in any of the ranges."""
        return isinstance(number, int) and any(
            low <= number and (high is None or number <= high) for low, high in self.pairs
        )

    def intersection(self, other: Ranges) -> Ranges:
        """The numbers that lie in both."""
        both = []
        for low, high in self.pairs:
            for other_low, other_high in other.pairs:
                first = max(low, other_low)
                last = min((end for end in (high, other_high) if end is not None), default=None)
                if last is None or first <= last:
                    both.append((first, last))
        return Ranges(tuple(sorted(both, key=lambda pair: pair[0])))

    def __str__(self) -> str:
        """As a target file writes it."""
        return ", ".join(
            str(low) if low == high else f"{low or ''}-{'' if high is None else high}" for low, high in self.pairs
        )
