"""What the user sees and sends: results on stdout, messages on stderr, models by `-` through both ends."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from reducelower.model.text import shown

if TYPE_CHECKING:
    from reducelower.outcome import Outcome

__all__ = [
    "STREAM",
    "Staged",
    "at_hand",
    "binary_result",
    "data_result",
    "finish",
    "keep_standard_output_free",
    "message",
    "on_standard_output",
    "prepare",
    "problem",
    "result",
    "shown",
    "staged",
    "warning",
    "width",
]

_WIDEST = 100
_is_free = False


def prepare() -> None:
    """Let nothing stop the output: no character that the terminal lacks, no stream that was closed before the start."""
    global _is_free
    _is_free = False
    sys.stdout, sys.stderr = sys.stdout or _nowhere(), sys.stderr or _nowhere()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # not every stream has it


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w")


def keep_standard_output_free() -> None:
    """From now on results for people go to standard error: a model, a report or JSON goes to standard output."""
    global _is_free
    _is_free = True


def result(text: str) -> None:
    """Print a result for people."""
    _print(text, sys.stderr if _is_free else sys.stdout)


def data_result(text: str) -> None:
    """Print a result for programs, which standard output is kept free for; it is never broken into lines."""
    try:
        sys.stdout.write(text + "\n")
    except BrokenPipeError:
        _silence(sys.stdout)


def binary_result(data: bytes) -> None:
    """Write bytes to standard output."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        _silence(sys.stdout)


def width() -> int:
    """Columns that text may take: those of the terminal, or those that are read well where there is none."""
    if not sys.stdout.isatty():
        return _WIDEST
    from shutil import get_terminal_size

    return max(min(get_terminal_size((_WIDEST, 24)).columns, _WIDEST), 30)


def message(text: str) -> None:
    """Print something on the way."""
    _print(text, sys.stderr)


def problem(sentence: str) -> None:
    """Print what went wrong: one line per problem, however long or odd the names in it are."""
    _print(f"error: {shown(sentence)}", sys.stderr)


def warning(sentence: str) -> None:
    """Print what a reader must not miss though nothing stops: one line, as of problems."""
    _print(f"warning: {shown(sentence)}", sys.stderr)


def finish() -> None:
    """Flush both streams; a reader that has gone away is no fault."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            _silence(stream)


def _print(text: str, stream: TextIO) -> None:
    if stream.isatty():
        text = "\n".join(map(_fitted, text.split("\n")))
    try:
        stream.write(text + "\n")
    except BrokenPipeError:
        _silence(stream)


def _fitted(line: str) -> str:
    """A line broken between words where the terminal ends, what follows further in than it begins."""
    from shutil import get_terminal_size

    columns = get_terminal_size((_WIDEST, 24)).columns
    if len(line) <= columns:
        return line
    import textwrap

    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(line, columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _silence(stream: TextIO) -> None:
    """Send what is still to come nowhere, so that the exit status stays that of the work."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


STREAM = "-"
"""What stands for standard input where a model is read, and for standard output where something is written."""


@dataclass(frozen=True)
class Staged:
    """Files that stand in for the streams.

    Attributes:
        models: the models, with a file for standard input.
        output: the output, with a file for standard output; None where none was named.
        names: what the user calls each of these files.
    """

    models: Sequence[str]
    output: str | None
    names: Mapping[str, str]

    def named(self, outcome: Outcome) -> Outcome:
        """An outcome in the user's words."""
        if not self.names:
            return outcome
        from reducelower.batch.staging import renamed

        problems = outcome.problems
        for path, name in self.names.items():
            problems = renamed(problems, path, name)
        source, output = (self.names.get(path, path) for path in (outcome.source, outcome.output))
        return replace(outcome, source=source, output=output, problems=problems)


@contextmanager
def staged(models: Sequence[str], output: str | None) -> Iterator[Staged]:
    """Read standard input into a file where a model is ``-``, and write the output from one where that is.

    Raises:
        click.UsageError: standard input is named twice.
    """
    if STREAM not in models and output != STREAM:
        yield Staged(models, output, {})
        return
    if models.count(STREAM) > 1:
        raise click.UsageError("- stands for standard input, which can be read only once")
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="reducelower-") as folder:
        source, result = Path(folder) / "stdin.onnx", Path(folder) / "stdout.onnx"
        if STREAM in models:
            source.write_bytes(sys.stdin.buffer.read())
        yield Staged(
            [str(source) if model == STREAM else model for model in models],
            str(result) if output == STREAM else output,
            {str(source): STREAM, str(result): STREAM},
        )
        if result.exists():
            binary_result(result.read_bytes())


@contextmanager
def at_hand(models: Sequence[str]) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """Models to read, as the user calls them, and as files of this machine: URLs are fetched, standard input read."""
    from reducelower.files.remote import as_path, is_url

    names = [as_path(name) for name in models]
    with ExitStack() as copies:
        paths: Sequence[str] = copies.enter_context(staged(names, None)).models
        if any(map(is_url, names)):
            from reducelower.batch import staging

            paths = [copies.enter_context(staging.at_hand(path)) for path in paths]
        yield names, paths


def on_standard_output(options: Mapping[str, Any]) -> None:
    """Send what is meant for people to standard error where something else goes to standard output.

    Raises:
        click.UsageError: two things would go there.
    """
    wanted = [
        flag
        for flag, is_there in (
            ("-o -", options.get("output") == STREAM),
            ("--report -", STREAM in options.get("reports", ())),
            ("--json", bool(options.get("as_json"))),
            ("--format", options.get("form", "text") != "text"),
        )
        if is_there
    ]
    if len(wanted) > 1:
        raise click.UsageError(f"{' and '.join(wanted)} would both be written to standard output; give one of them")
    if wanted and wanted != ["--format"]:
        keep_standard_output_free()
