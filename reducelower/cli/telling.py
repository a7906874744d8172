"""Report the outcomes of a command: each as it comes, then a summary, annotations and report files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from reducelower.cli import console
from reducelower.cli.text import github_annotations, summary

if TYPE_CHECKING:
    from reducelower.outcome import Outcome
    from reducelower.report.writing import Command

__all__ = ["tell"]


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
    as_text = as_json or options.get("form", "text") == "text"
    for_people = as_text and not quiet and not as_json
    reported: list[Outcome] = []
    for outcome in outcomes:
        reported.append(outcome)
        if as_json:
            from reducelower.report.plain import json_line

            console.result(json_line(outcome))
        if as_text:
            for problem in outcome.problems:
                console.problem(problem)
        if as_text and quiet and outcome.output:
            for warning in outcome.warnings:
                console.warning(f"{outcome.source}: {warning}")
        if for_people and (line := text(outcome)):
            console.result(line)
    if for_people and count > 1:
        console.result(summary(reported))
    if not as_text and (annotations := github_annotations(reported)):
        console.result(annotations)
    if options["reports"]:
        from reducelower.cli.reports import write_reports

        write_reports(command, reported, options["reports"])
    return max(outcome.status for outcome in reported)
