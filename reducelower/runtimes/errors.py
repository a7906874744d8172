"""What is wrong with a target file."""

from __future__ import annotations

__all__ = ["TargetError"]


class TargetError(ValueError):
    """A target file that cannot be read or says something a target file cannot say.

    Attributes:
        reason: what is wrong, and what to write instead.
        source: the file, or what stands for it.
        place: key in the file, such as ``fact 3: when.axes``; empty for the file as a whole.
    """

    def __init__(self, reason: str, source: str, place: str = "") -> None:
        self.reason = reason
        self.source = source
        self.place = place
        super().__init__(": ".join(filter(None, (source, place, reason))))
