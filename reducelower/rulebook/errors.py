"""What a rule that cannot be used raises."""

from __future__ import annotations

from pathlib import Path

from reducelower.errors import UnreadableError

__all__ = ["RuleError"]


class RuleError(UnreadableError):
    """A rule, or a whole book, that cannot be used.

    Attributes:
        reason: what is wrong, as the end of a sentence.
        path: file the rule stands in; None for a rule given as an object.
        line: line in that file, counted from 1; None where no single line is to blame.
    """

    def __init__(self, reason: str, path: Path | None = None, line: int | None = None) -> None:
        """Put the place in front of the reason."""
        self.reason = reason
        self.path = path
        self.line = line
        place = "" if path is None else f"{path}: " if line is None else f"{path}:{line}: "
        super().__init__(place + reason)
