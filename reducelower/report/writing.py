"""Writes a report in the format that the file's extension names."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

from reducelower.files.pending import write_whole
from reducelower.report.facts import Report

__all__ = ["FORMATS", "render", "write_report"]

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
        OSError: the file cannot be written.
    """
    destination = Path(path)
    extension = destination.suffix.lower()
    if extension not in FORMATS:
        raise ValueError(f"{path}: a report is one of {', '.join(FORMATS)}")
    write_whole(destination, render(report, extension))
