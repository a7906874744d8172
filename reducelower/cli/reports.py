"""The report files of a command."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from reducelower.failures import SettingError
from reducelower.report import FORMATS, Outcome, Report, write_report
from reducelower.report.writing import Command

__all__ = ["check_place", "check_report_paths", "write_reports"]


def check_report_paths(paths: Sequence[str], models: Iterable[str]) -> None:
    """Refuse, before any work, report paths that cannot be written or would overwrite a model of this run."""
    taken = {os.path.realpath(model) for model in models if model}
    places: set[str] = set()
    for path in paths:
        place = os.path.realpath(path)
        if place in places:
            raise SettingError(f"{path}: two reports would be written there; give each a place of its own")
        places.add(place)
        if Path(path).suffix.lower() not in FORMATS:
            raise SettingError(f"{path}: a report ends in one of {', '.join(FORMATS)}")
        if place in taken:
            raise SettingError(f"{path}: the report would replace a model")
        check_place(path)


def check_place(path: str) -> None:
    """Refuse, before any work, a path that is a folder or cannot be written; missing folders are created later."""
    if path.endswith(("/", os.sep)):
        raise SettingError(f"{path} is the name of a folder; name a file in it")
    nearest = next(folder for folder in Path(path).resolve().parents if folder.exists())
    if not nearest.is_dir():
        raise SettingError(f"{path}: {os.path.relpath(nearest)} is not a folder")
    if not os.access(nearest, os.W_OK):
        raise SettingError(f"cannot write {path}: Permission denied")
    if Path(path).is_dir():
        raise SettingError(f"{path} is a folder")


def write_reports(command: Command, models: Sequence[Outcome], paths: Sequence[str]) -> None:
    """Write the reports of a command."""
    report = Report(command, tuple(models), _run_facts() if paths else ())
    for path in paths:
        write_report(report, path)


def _run_facts() -> tuple[tuple[str, str], ...]:
    """Date, command line and versions of this run."""
    import shlex
    from datetime import datetime

    from reducelower.versions import versions

    line = shlex.join(["reducelower", *(click.get_current_context().find_root().obj or ())])
    date = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    return (("Date", date), ("Command", line), ("Versions", ", ".join(versions().splitlines())))
