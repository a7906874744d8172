"""Sets of numbers (``11-13, 18-``) and of versions of a runtime (``-1.13, 1.17-1.23``) as text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Self, TypeAlias

__all__ = ["Ranges", "Versions", "release"]

Release: TypeAlias = tuple[int, ...]

_NUMBERS = re.compile(r"\d+(\.\d+)*")


def release(version: str) -> Release:
    """The numbers that a version starts with: ``1.16.3`` is (1, 16, 3), and ``0.27.0.post1`` is (0, 27, 0)."""
    match = _NUMBERS.match(version)
    return tuple(map(int, match.group().split("."))) if match else ()


@dataclass(frozen=True)
class Ranges:
    """A set of natural numbers, as pairs of the first and the last one of each range; empty if open.

    A number is a version with one place.
    """

    pairs: tuple[tuple[Release, Release], ...]

    _NUMBER: ClassVar[str] = r"\d+"
    _HINT: ClassVar[str] = "a range; write 13, 13-17, 18- or 11, 13-17"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``7``, ``7-17``, ``18-``, ``-12`` or several of them with commas between.

        Raises:
            ValueError: the text is none of these.
        """
        part = re.compile(rf"({cls._NUMBER})?(-)?({cls._NUMBER})?")
        pairs = []
        for each in text.split(","):
            match = part.fullmatch(each.strip())
            first, dash, last = match.groups("") if match else ("", "", "")
            if not (first or last) or (last and not dash):
                raise ValueError(f"{text!r} is not {cls._HINT}")
            low, high = release(first), release(last if dash else first)
            if high and low[: len(high)] > high:
                raise ValueError(f"{text!r} ends before it starts")
            pairs.append((low, high))
        return cls(tuple(pairs))

    @classmethod
    def between(cls, low: int | None, high: int | None) -> Self:
        """All numbers from one to another; None if open. No number is below zero."""
        return cls((((low or 0,) if low or high == 0 else (), () if high is None else (high,)),))

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Self:
        """The fewest ranges that hold exactly these numbers, which have to be sorted."""
        runs: list[tuple[int, int]] = []
        for number in numbers:
            joins = runs and runs[-1][1] == number - 1
            runs.append((runs.pop()[0], number) if joins else (number, number))
        return cls(tuple(((low,), (high,)) for low, high in runs))

    def nearest(self, number: int) -> int:
        """The number in the set that is nearest to one, of two the lower."""
        ends = [(low[0] if low else 0, high[0] if high else number) for low, high in self.pairs]
        return min((max(low, min(high, number)) for low, high in ends), key=lambda each: (abs(each - number), each))

    def __contains__(self, number: object) -> bool:
        """Whether a number or version lies in any of the ranges; a version includes those that start with it."""
        numbers = release(str(number))
        return bool(numbers) and any(
            low <= numbers and (not high or numbers[: len(high)] <= high) for low, high in self.pairs
        )

    def __str__(self) -> str:
        """As a target file writes it."""
        return ", ".join(_text(low) if low == high else f"{_text(low)}-{_text(high)}" for low, high in self.pairs)


class Versions(Ranges):
    """A set of versions: ``1.16``, ``1.14-1.16``, ``1.17-``, ``-1.13`` or several of them; ``-1.16`` holds 1.16.3."""

    _NUMBER = r"\d+(?:\.\d+)*"
    _HINT = "a range of versions; write 1.16, 1.14-1.16, 1.17- or -1.13, 1.17-1.23"


def _text(numbers: Release) -> str:
    return ".".join(map(str, numbers))
