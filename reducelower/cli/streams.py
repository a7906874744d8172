"""Use temporary files for models from standard input, to standard output (both ``-``), and from URLs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reducelower.cli.console import binary_result, keep_standard_output_free

if TYPE_CHECKING:
    from reducelower.outcome import Outcome

__all__ = ["STREAM", "Staged", "at_hand", "on_standard_output", "staged"]

STREAM = "-"
"""The argument for standard input or standard output."""


@dataclass(frozen=True)
class Staged:
    """Models and output as files, and the user's name for each of these paths."""

    models: Sequence[str]
    output: str | None
    names: Mapping[str, str]

    def named(self, outcome: Outcome) -> Outcome:
        """The outcome with the user's names."""
        if not self.names:
            return outcome
        from reducelower.files.remote import renamed

        problems = outcome.problems
        for path, name in self.names.items():
            problems = renamed(problems, path, name)
        source, output = (self.names.get(path, path) for path in (outcome.source, outcome.output))
        return replace(outcome, source=source, output=output, problems=problems)


@contextmanager
def staged(models: Sequence[str], output: str | None) -> Iterator[Staged]:
    """Store standard input in a file if a model is ``-``, and write the output to standard output if it is ``-``."""
    if STREAM not in models and output != STREAM:
        yield Staged(models, output, {})
        return
    if models.count(STREAM) > 1:
        raise click.UsageError("- stands for standard input, which can be read only once")
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="reducelower-") as folder:
        source, result = Path(folder) / "stdin.onnx", Path(folder) / "stdout.onnx"
        if STREAM in models:
            if sys.stdin is None:
                raise click.UsageError("standard input is closed, so no model can be read from it")
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
    """The user's names of models, and local files for them; fetches URLs and reads standard input."""
    from reducelower.files.remote import fetched

    with ExitStack() as copies:
        paths: Sequence[str] = copies.enter_context(staged(models, None)).models
        yield models, [copies.enter_context(fetched(path)) for path in paths]


def on_standard_output(options: Mapping[str, Any]) -> None:
    """Send text for people to standard error if other data goes to standard output; refuse two such outputs."""
    flags = [
        flag
        for flag, is_set in (
            ("-o -", options.get("output") == STREAM),
            ("--report -", STREAM in options.get("reports", ())),
            ("--json", bool(options.get("as_json"))),
            ("--format", options.get("form", "text") != "text"),
        )
        if is_set
    ]
    if options.get("output") == STREAM and sys.stdout is not None and sys.stdout.isatty():
        raise click.UsageError("a terminal shows no models; give -o FILE, or redirect the output: -o - > FILE")
    if len(flags) > 1:
        raise click.UsageError(f"{' and '.join(flags)} would both be written to standard output; give one of them")
    if flags and flags != ["--format"]:
        keep_standard_output_free()
