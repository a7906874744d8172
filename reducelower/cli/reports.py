"""From what a run found to the report files that the command line asks for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from reducelower.batch import Checked, Outcome
from reducelower.cli import console
from reducelower.cli.streams import STREAM
from reducelower.failures import DONE, FAULT, REFUSED, SettingError
from reducelower.report import FORMATS, ModelReport, Report, render, write_report
from reducelower.report.facts import Command, Verdict

__all__ = ["check_place", "check_report_paths", "of_check", "of_conversion", "write_reports"]


def check_report_paths(paths: Sequence[str], models: Iterable[str]) -> None:
    """Find out before any work whether reports can be written where they should go.

    Args:
        paths: the report files.
        models: files that the run reads or writes, which a report must not replace.

    Raises:
        SettingError: a path has no known extension, is a model, or lies in no folder.
    """
    taken = {os.path.realpath(model) for model in models if model}
    for path in paths:
        if path == STREAM:
            continue
        if Path(path).suffix.lower() not in FORMATS:
            raise SettingError(f"{path}: a report ends in one of {', '.join(FORMATS)}")
        if os.path.realpath(path) in taken:
            raise SettingError(f"{path}: the report would replace a model")
        check_place(path)


def check_place(path: str) -> None:
    """Find out before any work whether there can be a file of this name.

    Raises:
        SettingError: it is a folder, or lies in none.
    """
    if not Path(path).parent.is_dir():
        raise SettingError(f"{path}: there is no folder {Path(path).parent}")
    if Path(path).is_dir():
        raise SettingError(f"{path} is a folder")


def write_reports(command: Command, models: Sequence[ModelReport], paths: Sequence[str]) -> None:
    """Write every report.

    Raises:
        OSError: a file cannot be written.
    """
    report = Report(command, tuple(models), _run_facts() if paths else ())
    for path in paths:
        if path == STREAM:
            console.data_result(render(report, ".json").rstrip("\n"))
        else:
            write_report(report, path)


def _run_facts() -> tuple[tuple[str, str], ...]:
    """When and how this run was started, and with what."""
    import shlex
    from datetime import datetime

    from reducelower.versions import versions

    line = shlex.join(["reducelower", *(click.get_current_context().find_root().obj or ())])
    made = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    return (("Date", made), ("Command", line), ("Versions", ", ".join(versions().splitlines())))


def of_conversion(outcome: Outcome) -> ModelReport:
    """The section about a converted model."""
    checked = outcome.verification
    verdict: Verdict = _stopped(outcome.status)
    if checked is not None and outcome.status == REFUSED:
        verdict = "different" if checked.verdict == "different" else "not shown"
    if outcome.status == DONE:
        verdict = "kept" if outcome.kept else "converted"
    return ModelReport(
        outcome.source,
        verdict,
        outcome.output,
        _without_path(outcome.problems, outcome.source),
        outcome.plan,
        outcome.refusals,
        checked,
        details=outcome.details,
        seconds=outcome.seconds,
    )


def of_check(found: Checked) -> ModelReport:
    """The section about a checked model."""
    verdict: Verdict = _stopped(found.status)
    refusals = found.plan.refusals if found.plan is not None else ()
    if found.plan is not None:
        verdict = "refused" if refusals else "legal" if found.plan.changes_nothing else "rewrite"
    return ModelReport(
        found.path,
        verdict,
        problems=_without_path(found.problems, found.path),
        plan=found.plan,
        refusals=refusals,
        details=found.details,
        seconds=found.seconds,
    )


def _without_path(problems: Sequence[str], path: str) -> tuple[str, ...]:
    """The sentences as they stand under the model's name."""
    return tuple(problem.removeprefix(f"{path}: ") for problem in problems)


def _stopped(status: int) -> Verdict:
    """The verdict on a model of which nothing came."""
    return "refused" if status == REFUSED else "failed" if status == FAULT else "unreadable"
