"""What is said of a result: lines with a label each, which a terminal, a page and a comment show in their own ways."""

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
        label: what it is about, such as ``rewritten``, ``verified``, ``note`` or ``warning``; empty where it goes on
            with what the line before is about.
        text: what there is to say, without a full stop.
        tone: how a reader should take it.
        is_detail: whether only a reader who asks for details sees it.
    """

    label: str
    text: str
    tone: Tone = ""
    is_detail: bool = False


def as_text(lines: Iterable[Line]) -> str:
    """The lines as plain text, without details."""
    return "\n".join(f"{line.label:<12}{line.text}" for line in lines if not line.is_detail)


def enumerated(names: Sequence[str], most: int) -> str:
    """The first of some names, and how many more there are: ``a and b``, ``a, b and 3 more``."""
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"{len(names) - most:,} more")
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1]))) if shown else ""
