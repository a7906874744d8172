"""A report on one run of a command, written in the format of the file's extension."""

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
        models: the outcome of each model, in the order of the command line.
        run: named facts about the run: date, command line, versions; empty without a command.
    """

    command: Command
    models: tuple[Outcome, ...]
    run: tuple[tuple[str, str], ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every model passed."""
        return all(model.passed for model in self.models)

    @property
    def headline(self) -> str:
        """The result for a single model, or the number of models that passed."""
        if len(self.models) == 1:
            return self.models[0].sentence or self.models[0].verdict
        return f"{sum(model.passed for model in self.models)} of {len(self.models)} models pass"

    @property
    def verdicts(self) -> Mapping[Verdict, int]:
        """The number of models with each verdict."""
        return Counter(model.verdict for model in self.models)


FORMATS: Mapping[str, str] = {
    ".json": "reducelower.report.plain",
    ".xml": "reducelower.report.junit",
    ".md": "reducelower.report.markdown",
    ".html": "reducelower.report.page",
}
"""The module that renders each format, by file extension."""


def render(report: Report, extension: str) -> str:
    """The report in one of `FORMATS`."""
    renderer: Callable[[Report], str] = import_module(FORMATS[extension]).render
    return renderer(report)


def write_report(report: Report, path: str | os.PathLike[str]) -> None:
    """Write a report completely or not at all; an existing file is replaced.

    Raises:
        ValueError: there is no format for the extension.
    """
    destination = Path(path)
    extension = destination.suffix.lower()
    if extension not in FORMATS:
        raise ValueError(f"{path}: a report is one of {', '.join(FORMATS)}")
    write_whole(destination, render(report, extension))
