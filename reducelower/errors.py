"""What reducelower raises: refusals, each with its place, its reason and what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["ConversionError", "Refusal", "RefusedError", "UnreadableError", "UnreadableModelError"]


@dataclass(frozen=True)
class Refusal:
    """One node, or one whole model, that cannot be made legal for the target.

    Attributes:
        graph: graph path of the node, such as ``graph/If_3.then_branch``.
        node: name of the node; ``ReduceSum#4`` (operator and position) where it has none; empty for the model itself.
        operator: operator type, with its domain in front where that is not the default one; empty for the model.
        reason: what is in the way, as the end of a sentence.
        hint: what the user can do about it; may be empty.
    """

    graph: str
    node: str
    operator: str
    reason: str
    hint: str = ""

    def __str__(self) -> str:
        """One sentence with the place in front."""
        place = f"{self.graph}: {self.operator} {self.node!r}: " if self.operator else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}{self.reason}{hint}"


class ConversionError(ValueError):
    """The model cannot be made legal for the target; `refusals` holds every reason, not just the first."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        self.refusals: tuple[Refusal, ...] = tuple(refusals)
        super().__init__("\n".join(map(str, self.refusals)))


class RefusedError(Exception):
    """Raised by a rule that cannot answer for its node; the engine adds the place and collects it as a `Refusal`."""

    def __init__(self, reason: str, hint: str = "") -> None:
        self.reason = reason
        self.hint = hint
        super().__init__(reason)


class UnreadableError(ValueError):
    """A file that cannot be used; the sentence names it."""


class UnreadableModelError(UnreadableError):
    """A file that is not there, is not an ONNX model, or cannot be read or written."""
