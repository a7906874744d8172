"""What a user who mistyped a name may have meant."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["did_you_mean"]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a sentence that names the nearest known name; empty when nothing is near."""
    from difflib import get_close_matches

    by_spelling = {other.lower(): other for other in known}
    near = get_close_matches(name.lower(), by_spelling, n=1, cutoff=0.6)
    return f"; did you mean {by_spelling[near[0]]!r}?" if near else ""
