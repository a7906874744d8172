"""The errors that reducelower raises, refusals with place, reason and what to do next, and exit statuses."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from reducelower.lines import enumerated

__all__ = [
    "BAD_USAGE",
    "DONE",
    "FAULT",
    "INTERRUPTED",
    "REFUSED",
    "TERMINATED",
    "ConversionError",
    "Place",
    "Refusal",
    "RefusedError",
    "RuleError",
    "SettingError",
    "TargetError",
    "UnknownValueError",
    "UnreadableError",
    "UnreadableModelError",
    "alike",
    "describe",
    "sentences",
]


@dataclass(frozen=True)
class Refusal:
    """One node, or one whole model, that cannot be made to fit the target.

    Attributes:
        graph: graph path of the node, such as ``graph/If_3.then_branch``; empty if the reason is what a caller said of
            the model, such as a name that it lacks.
        node: name of the node; ``ReduceSum#4`` (operator and position) if it has no name; empty for the model itself.
        operator: operator type, with its domain in front if that is not the default domain; empty for the model itself.
        reason: the obstacle, as the end of a sentence.
        hint: what the user can do about it; may be empty.
    """

    graph: str
    node: str
    operator: str
    reason: str
    hint: str = ""

    def __str__(self) -> str:
        """One sentence with the place in front."""
        return f"{self.place}{self.said}"

    @property
    def place(self) -> str:
        """Graph, operator and node, and a colon; empty for the model itself."""
        return f"{self.graph}: {self.operator} {self.node!r}: " if self.operator else ""

    @property
    def name(self) -> str:
        """Operator and node, and the graph if it is not the main graph."""
        inside = f" in {self.graph}" if self.graph != "graph" else ""
        return f"{self.operator} {self.node!r}{inside}"

    @property
    def said(self) -> str:
        """The reason, followed by the hint."""
        return f"{self.reason} ({self.hint})" if self.hint else self.reason


def alike(refusals: Iterable[Refusal]) -> tuple[tuple[Refusal, ...], ...]:
    """Groups of refusals that are the same except for the node."""
    groups: dict[str, list[Refusal]] = {}
    for refusal in refusals:
        groups.setdefault(refusal.said, []).append(refusal)
    return tuple(map(tuple, groups.values()))


def sentences(refusals: Iterable[Refusal]) -> tuple[str, ...]:
    """Refusals as sentences; those that differ only in the node become one, with their number and the first two."""
    return tuple(
        str(group[0])
        if len(group) == 1
        else f"{len(group):,} nodes, {enumerated([item.name for item in group], 2)}: {group[0].said}"
        for group in alike(refusals)
    )


class ConversionError(ValueError):
    """The model cannot be made to fit the target; `refusals` has every reason, not just the first."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        self.refusals: tuple[Refusal, ...] = tuple(refusals)
        super().__init__("\n".join(sentences(self.refusals)))

    @property
    def is_about_model(self) -> bool:
        """Whether the model is the reason, and not what a caller said of it."""
        return any(refusal.graph for refusal in self.refusals)


class RefusedError(Exception):
    """Raised by a rule that cannot rewrite its node; the engine adds the place and collects it as a `Refusal`.

    Attributes:
        reason, hint: see `Refusal`.
        operator: the operator that the reason is about, if its node was written in place of another node.
    """

    def __init__(self, reason: str, hint: str = "", operator: str = "") -> None:
        self.reason = reason
        self.hint = hint
        self.operator = operator
        super().__init__(reason)

    def reason_for(self, op_type: str) -> str:
        """The reason for a node of the user's model; says so if it is about a node that replaces it."""
        written = self.operator not in ("", op_type)
        return f"it is written with {self.operator}, and {self.reason}" if written else self.reason


class UnknownValueError(RefusedError):
    """A rule needs something unknown about a value. The reason names the value, but no operator."""


class UnreadableError(ValueError):
    """A file that cannot be used. The message names it."""


class UnreadableModelError(UnreadableError):
    """A file that does not exist, is not an ONNX model, or cannot be read or written."""


class Place(NamedTuple):
    """Where a rule is written; nowhere for one given as an object."""

    path: Path | None
    line: int | None


class RuleError(UnreadableError):
    """A rule, or a whole book, that cannot be used.

    Attributes:
        reason: what is wrong, as the end of a sentence.
        path: file that contains the rule; None for a rule from an object.
        line: line in that file, counted from 1; None if the fault is not in a single line.
    """

    def __init__(self, reason: str, path: Path | None = None, line: int | None = None) -> None:
        """Put the place in front of the reason."""
        self.reason = reason
        self.path = path
        self.line = line
        place = "" if path is None else f"{path}: " if line is None else f"{path}:{line}: "
        super().__init__(place + reason)


class TargetError(ValueError):
    """A target file that cannot be read or is not valid. The message says what to write instead."""

    def __init__(self, reason: str, source: str, place: str = "") -> None:
        """Put the file, and the key in it such as ``fact 3: when.axes``, in front of the reason."""
        super().__init__(": ".join(filter(None, (source, place, reason))))


DONE = 0
REFUSED = 1
BAD_USAGE = 2
FAULT = 3
INTERRUPTED = 130
TERMINATED = 143


class SettingError(ValueError):
    """A setting that makes no sense for these models."""


def _without_file_name() -> str:
    """The subject of a system error without a file name."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return "the working directory, which was removed"
    return "the system"


def describe(error: BaseException, source: str = "") -> tuple[tuple[str, ...], int]:
    """Sentences for the exception that is being handled, and the exit status for it.

    Sentences that do not name the source get it as a prefix. If the user asked for tracebacks, a fault has its own.
    """
    place = f"{source}: " if source else ""
    if isinstance(error, UnreadableError):
        return (str(error),), BAD_USAGE
    if isinstance(error, ConversionError):
        status = REFUSED if error.is_about_model else BAD_USAGE
        return tuple(place + sentence for sentence in sentences(error.refusals)), status
    if isinstance(error, SettingError):
        return (place + str(error),), BAD_USAGE
    if isinstance(error, MemoryError):
        return (f"{place}there is not enough memory for this model",), BAD_USAGE
    if isinstance(error, RecursionError):
        return (f"{place}it nests subgraphs or functions deeper than can be followed",), REFUSED
    if isinstance(error, OSError) and error.strerror:
        file = str(error.filename or _without_file_name())
        return (f"{'' if file == source else place}{file}: {error.strerror}",), BAD_USAGE
    kind = type(error).__name__
    cause = f"{kind}: {error}" if str(error) else kind
    text = f"{place}reducelower itself failed ({cause}); please report this together with the model; "
    lines = [f"{text}REDUCELOWER_DEBUG=1 shows where"]
    if os.environ.get("REDUCELOWER_DEBUG", "") not in ("", "0"):
        import traceback

        lines += traceback.format_exc().splitlines()
    return tuple(lines), FAULT
