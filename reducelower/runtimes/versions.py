"""Versions of a runtime and sets of them as people write them: ``-1.13, 1.17-1.23``."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Versions", "release"]

_NUMBERS = re.compile(r"\d+(\.\d+)*")

_PART = re.compile(r"(?P<low>\d[\d.]*)?(?P<dash>-)?(?P<high>\d[\d.]*)?")


def release(version: str) -> tuple[int, ...]:
    """The numbers that a version starts with: ``1.16.3`` is (1, 16, 3), and ``0.27.0.post1`` is (0, 27, 0)."""
    match = _NUMBERS.match(version)
    return tuple(map(int, match.group().split("."))) if match else ()


@dataclass(frozen=True)
class Versions:
    """Versions, as pairs of the first and the last one; empty is no end.

    A version stands for all that start with it: 1.16 is the last one in ``-1.16``, and 1.16.3 is still among them.
    """

    pairs: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Read ``1.16``, ``1.14-1.16``, ``1.17-``, ``-1.13`` or several of them with commas between.

        Raises:
            ValueError: the text is none of these.
        """
        pairs = []
        for part in text.split(","):
            match = _PART.fullmatch(part.strip())
            low, high = (release(match["low"] or ""), release(match["high"] or "")) if match else ((), ())
            if match is None or not (low or high) or (not match["dash"] and high):
                raise ValueError(
                    f"{text!r} is not a range of versions; write 1.16, 1.14-1.16, 1.17- or -1.13, 1.17-1.23"
                )
            high = high if match["dash"] else low
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
