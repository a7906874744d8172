"""The console: results on standard output, messages on standard error."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, TextIO

import click

from reducelower.lines import Tone
from reducelower.text import shown

__all__ = ["finish", "own_standard_output", "prepare", "problem", "result", "shown", "styled", "width"]

_WIDEST = 100
_ELSEWHERE = 80
"""Columns for text without a terminal."""

_COLOURS: Mapping[Tone, str] = {"good": "green", "warning": "yellow", "bad": "red"}
_lost = ""
"""Why results could not be written to standard output."""


def prepare() -> None:
    """Make output safe: escape characters that the terminal lacks, and replace streams that were closed at the
    start."""
    global _lost
    _lost = ""
    sys.stdout, sys.stderr = sys.stdout or _nowhere(), sys.stderr or _nowhere()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # not every stream has it


def own_standard_output() -> None:
    """Keep standard output for results: discard what native code prints there, such as a warning of onnx's checker
    between two lines of JSON."""
    stream = sys.__stdout__
    if stream is None or stream is not sys.stdout:
        return
    with contextlib.suppress(OSError, ValueError):
        theirs = stream.fileno()
        ours = os.dup(theirs)
        by_line = 1 if os.isatty(ours) else -1
        sys.stdout = os.fdopen(ours, "w", by_line, encoding=stream.encoding, errors=stream.errors)
        with _nowhere() as nowhere:
            os.dup2(nowhere.fileno(), theirs)


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w")


def result(*lines: str) -> None:
    """Print a result, or several."""
    for line in lines:
        _print(line, sys.stdout)


def width() -> int:
    """The width for text in columns: that of the terminal, or a readable default."""
    if not sys.stdout.isatty():
        return _ELSEWHERE
    columns = 0
    with contextlib.suppress(OSError, ValueError):  # of any descriptor but 0 to 2, Windows does not say it
        # File descriptor 1 may lead elsewhere (see `own_standard_output`).
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
    return max(min(shutil.get_terminal_size((columns or _WIDEST, 0)).columns, _WIDEST), 30)


def styled(text: str, tone: Tone, stream: TextIO | None = None) -> str:
    """A text in the colour of its tone, if its stream, by default standard output, shows colours."""
    return click.style(text, fg=_COLOURS[tone]) if tone and _shows_colours(stream or sys.stdout) else text


def _shows_colours(stream: TextIO) -> bool:
    """Whether to use colours, by NO_COLOR, FORCE_COLOR and the terminal, like rich."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")


def problem(sentence: str, kind: Literal["error", "warning"] = "error") -> None:
    """Print an error or a warning on one line, whatever names it contains."""
    label = styled(f"{kind}:", "bad" if kind == "error" else "warning", sys.stderr)
    _print(f"{label} {shown(sentence)}", sys.stderr)


def finish() -> bool:
    """Flush both streams; return whether standard output took all results, and print an error otherwise."""
    with _discarding(sys.stdout):
        sys.stdout.flush()
    if _lost:
        problem(f"cannot write to standard output: {_lost}")
    with _discarding(sys.stderr):
        sys.stderr.flush()
    return not _lost


def _print(text: str, stream: TextIO) -> None:
    with _discarding(stream):
        stream.write(text + "\n")


@contextlib.contextmanager
def _discarding(stream: TextIO) -> Iterator[None]:
    """Discard output that a stream does not take. A closed pipe is no error; with a full disk, results are lost."""
    global _lost
    try:
        yield
    except OSError as error:
        if stream is sys.stdout and not isinstance(error, BrokenPipeError):
            _lost = error.strerror or str(error)
        _silence(stream)


def _silence(stream: TextIO) -> None:
    """Discard further output, so that the exit status stays that of the work."""
    with contextlib.suppress(OSError, ValueError), _nowhere() as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())
