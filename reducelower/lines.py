"""Labelled lines about a result, which a terminal, a page and a comment show in their own ways."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Line", "Tone", "as_text", "enumerated"]

Tone = Literal["", "good", "warning", "bad"]


@dataclass(frozen=True)
class Line:
    """One line about a result.

    Attributes:
        label: the topic, such as ``rewritten``, ``verified``, ``note`` or ``warning``; empty if it continues the line
            before.
        text: the text, without a full stop.
        tone: good, warning or bad; empty if neutral.
        is_detail: whether it is only shown to readers who ask for details.
    """

    label: str
    text: str
    tone: Tone = ""
    is_detail: bool = False


def as_text(lines: Iterable[Line]) -> str:
    """The lines as plain text, without details."""
    return "\n".join(f"{line.label:<12}{line.text}" for line in lines if not line.is_detail)


def enumerated(names: Sequence[str], most: int) -> str:
    """The first names, and the number of others: ``a and b``, ``a, b and 3 more``."""
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"{len(names) - most:,} more")
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1]))) if shown else ""
