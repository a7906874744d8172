"""Sets of integers (``11-13, 18-``) and of versions of a runtime (``-1.13, 1.17-1.23``) as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

__all__ = ["Ranges", "Versions", "release"]


def _ends(text: str, number: str, hint: str) -> Iterator[tuple[str, str]]:
    """The first and last number of each range in a text, empty if open; `number` is a pattern for one number."""
    part = re.compile(rf"({number})?(-)?({number})?")
    for each in text.split(","):
        match = part.fullmatch(each.strip())
        low, dash, high = match.groups("") if match else ("", "", "")
        if not (low or high) or (high and not dash):
            raise ValueError(f"{text!r} is not {hint}")
        yield low, high if dash else low


@dataclass(frozen=True)
class Ranges:
    """A set of natural numbers, as pairs of the first and the last one of each range; None if open."""

    pairs: tuple[tuple[int, int | None], ...]

    @classmethod
    def parse(cls, text: str) -> Ranges:
        """Read ``7``, ``7-17``, ``18-``, ``-12`` or several of them with commas between.

        Raises:
            ValueError: the text is none of these.
        """
        pairs = []
        for first, last in _ends(text, r"\d+", "a range; write 13, 13-17, 18- or 11, 13-17"):
            low, high = int(first or 0), int(last) if last else None
            if high is not None and high < low:
                raise ValueError(f"{text!r} ends before it starts")
            pairs.append((low, high))
        return cls(tuple(pairs))

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Ranges:
        """The fewest ranges that hold exactly these numbers, which have to be sorted."""
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


_NUMBERS = re.compile(r"\d+(\.\d+)*")


def release(version: str) -> tuple[int, ...]:
    """The numbers that a version starts with: ``1.16.3`` is (1, 16, 3), and ``0.27.0.post1`` is (0, 27, 0)."""
    match = _NUMBERS.match(version)
    return tuple(map(int, match.group().split("."))) if match else ()


@dataclass(frozen=True)
class Versions:
    """A set of versions, as pairs of the first and the last one of each range; empty if open.

    A version includes those that start with it: ``-1.16`` holds 1.16.3.
    """

    pairs: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Read ``1.16``, ``1.14-1.16``, ``1.17-``, ``-1.13`` or several of them with commas between.

        Raises:
            ValueError: the text is none of these.
        """
        pairs = []
        hint = "a range of versions; write 1.16, 1.14-1.16, 1.17- or -1.13, 1.17-1.23"
        for low, high in ((release(first), release(last)) for first, last in _ends(text, r"\d+(?:\.\d+)*", hint)):
            if high and low[: len(high)] > high:
                raise ValueError(f"{text!r} ends before it starts")
            pairs.append((low, high))
        return cls(tuple(pairs))

    def __contains__(self, version: object) -> bool:
        """Whether a version lies in any of the ranges."""
        numbers = release(version) if isinstance(version, str) else ()
        return bool(numbers) and any(
            low <= numbers and (not high or numbers[: len(high)] <= high) for low, high in self.pairs
        )

    def __str__(self) -> str:
        """As a target file writes it."""
        return ", ".join(_text(low) if low == high else f"{_text(low)}-{_text(high)}" for low, high in self.pairs)


def _text(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))
