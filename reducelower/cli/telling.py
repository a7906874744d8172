"""Report the outcomes of a command: each as it comes, then a summary, annotations and report files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reducelower.cli import console
from reducelower.cli.text import github_annotations, summary
from reducelower.errors import SettingError

if TYPE_CHECKING:
    from reducelower.outcome import Outcome
    from reducelower.report.writing import Command

__all__ = ["check_place", "check_report_paths", "tell"]


def tell(
    command: Command,
    outcomes: Iterable[Outcome],
    count: int,
    options: Mapping[str, Any],
    text: Callable[[Outcome], str],
) -> int:
    """Report the outcomes of `count` models as the options say, and return the exit status.

    `text` gives the text for people about one outcome; an empty text is not printed.
    """
    as_json, quiet = options["as_json"], options["quiet"]
    as_annotations = not as_json and options.get("form") == "github"
    for_people = not (as_json or as_annotations or quiet)
    reported: list[Outcome] = []
    for outcome in outcomes:
        reported.append(outcome)
        if as_json:
            from reducelower.report.plain import json_line

            console.result(json_line(outcome))
        if not as_annotations:
            for problem in outcome.problems:
                console.problem(problem)
            for warning in outcome.warnings if quiet and outcome.output else ():
                console.problem(f"{outcome.source}: {warning}", "warning")
        if for_people and (line := text(outcome)):
            console.result(line)
    if for_people and count > 1:
        console.result(summary(reported))
    if as_annotations and (annotations := github_annotations(reported)):
        console.result(annotations)
    _write_reports(command, reported, options["reports"])
    return max(outcome.status for outcome in reported)


def _write_reports(command: Command, outcomes: Sequence[Outcome], paths: Sequence[str]) -> None:
    if not paths:
        return
    import shlex
    from datetime import datetime

    from reducelower.report import Report, write_report
    from reducelower.versions import versions

    line = shlex.join(["reducelower", *(click.get_current_context().find_root().obj or ())])
    date = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    facts = (("Date", date), ("Command", line), ("Versions", ", ".join(versions().splitlines())))
    for path in paths:
        write_report(Report(command, tuple(outcomes), facts), path)


def check_report_paths(paths: Sequence[str], models: Iterable[str]) -> None:
    """Refuse, before any work, report paths that cannot be written or would overwrite a model of this run."""
    taken = {os.path.realpath(model) for model in models if model}
    for path in paths:
        from reducelower.report import FORMATS  # most runs write none

        if Path(path).suffix.lower() not in FORMATS:
            raise SettingError(f"{path}: a report ends in one of {', '.join(FORMATS)}")
        if os.path.realpath(path) in taken:
            raise SettingError(f"{path}: the report would replace a model or another report")
        taken.add(os.path.realpath(path))
        check_place(path)


def check_place(path: str) -> None:
    """Refuse, before any work, a path that is a folder or cannot be written; missing folders are created later."""
    nearest = next(folder for folder in Path(path).resolve().parents if folder.exists())
    if not nearest.is_dir():
        raise SettingError(f"{path}: {os.path.relpath(nearest)} is not a folder")
    if not os.access(nearest, os.W_OK):
        raise SettingError(f"cannot write {path}: Permission denied")
    if Path(path).is_dir() or path.endswith(("/", os.sep)):
        raise SettingError(f"{path} is a folder; name a file in it")
