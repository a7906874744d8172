"""Exit statuses, and the sentence and status for an exception."""

from __future__ import annotations

import os
from pathlib import Path

from reducelower.errors import ConversionError, UnreadableError, sentences

__all__ = [
    "BAD_USAGE",
    "DONE",
    "FAULT",
    "INTERRUPTED",
    "REFUSED",
    "TERMINATED",
    "SettingError",
    "describe",
    "wants_trace",
]

DONE = 0
REFUSED = 1
BAD_USAGE = 2
FAULT = 3
INTERRUPTED = 130
TERMINATED = 143


class SettingError(ValueError):
    """A setting that makes no sense for these models."""


def wants_trace() -> bool:
    """Whether the user asked to see tracebacks."""
    return os.environ.get("REDUCELOWER_DEBUG", "") not in ("", "0")


def _without_file_name() -> str:
    """The subject of a system error without a file name."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return "the working directory, which was removed"
    return "the system"


def describe(error: BaseException, source: str = "") -> tuple[tuple[str, ...], int]:
    """Sentences for the exception that is being handled, and the exit status for it.

    Sentences that do not name the source get it as a prefix. With `wants_trace`, a fault has its traceback.
    """
    place = f"{source}: " if source else ""
    if isinstance(error, UnreadableError):
        return (str(error),), BAD_USAGE
    if isinstance(error, ConversionError):
        return tuple(place + sentence for sentence in sentences(error.refusals)), REFUSED
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
    if wants_trace():
        import traceback

        lines += traceback.format_exc().splitlines()
    return tuple(lines), FAULT
