"""A report on one run of a command, and writing it in the format that the file's extension names."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal

from reducelower.files.pending import write_whole
from reducelower.outcome import Outcome, Verdict

__all__ = ["FORMATS", "Command", "Report", "render", "write_report"]

Command = Literal["convert", "expand", "check", "verify", "diff", "raise", "repair"]


@dataclass(frozen=True)
class Report:
    """One run of a command.

    Attributes:
        models: what came of each model, in the order they were named.
        run: date, command line and versions, each with its name; empty where the report is not that of a command.
    """

    command: Command
    models: tuple[Outcome, ...]
    run: tuple[tuple[str, str], ...] = ()

    @property
    def passed(self) -> bool:
        """Whether nothing speaks against any model."""
        return all(model.passed for model in self.models)

    @property
    def verdicts(self) -> Mapping[Verdict, int]:
        """How many models have each verdict."""
        return Counter(model.verdict for model in self.models)


FORMATS: Mapping[str, str] = {
    ".json": "reducelower.report.plain",
    ".xml": "reducelower.report.junit",
    ".md": "reducelower.report.markdown",
    ".html": "reducelower.report.page",
}
"""The module that renders each form, by file extension."""


def render(report: Report, extension: str) -> str:
    """The report in one of `FORMATS`."""
    renderer: Callable[[Report], str] = import_module(FORMATS[extension]).render
    return renderer(report)


def write_report(report: Report, path: str | os.PathLike[str]) -> None:
    """Write a report, whole or not at all; a file of that name is replaced.

    Raises:
        ValueError: there is no form for the extension.
    """
    destination = Path(path)
    extension = destination.suffix.lower()
    if extension not in FORMATS:
        raise ValueError(f"{path}: a report is one of {', '.join(FORMATS)}")
    write_whole(destination, render(report, extension))
