"""What a command says of models: each outcome as it comes, in the end their sum, annotations and report files."""

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
    found: Iterable[Outcome],
    count: int,
    options: Mapping[str, Any],
    text: Callable[[Outcome], str],
) -> int:
    """Tell the outcomes of a number of models as the options ask for it, and return the exit status.

    `text` says something about one of them to people; nothing if it is empty.
    """
    as_json, quiet, as_text = options["as_json"], options["quiet"], options.get("form", "text") == "text"
    for_people = as_text and not quiet and not as_json
    outcomes: list[Outcome] = []
    for outcome in found:
        outcomes.append(outcome)
        if as_json:
            from reducelower.report.plain import json_line

            console.data_result(json_line(outcome))
        if as_text:
            for problem in outcome.problems:
                console.problem(problem)
        if as_text and quiet and outcome.output:
            for warning in outcome.warnings:
                console.warning(f"{outcome.source}: {warning}")
        if for_people and (said := text(outcome)):
            console.result(said)
    if for_people and count > 1:
        console.result(summary(outcomes))
    if not as_text and (annotations := github_annotations(outcomes)):
        console.data_result(annotations)
    if options["reports"]:
        from reducelower.cli.reports import write_reports

        write_reports(command, outcomes, options["reports"])
    return max(outcome.status for outcome in outcomes)
