"""Conversions and checks of many models: one set of settings, one report."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias

from reducelower.batch.inputs import find_models, plan_outputs
from reducelower.batch.many import check_file, converting, crashed, run_all
from reducelower.cli.progress import progress
from reducelower.cli.telling import check_report_paths, tell
from reducelower.cli.text import full_text, short_text
from reducelower.errors import SettingError
from reducelower.options import Settings
from reducelower.outcome import Outcome
from reducelower.pipeline.task import Task

__all__ = ["check_all", "convert_all"]

ConversionCommand: TypeAlias = Literal["convert", "expand", "raise", "repair"]


def convert_all(
    command: ConversionCommand, models: Sequence[str], settings: Settings, options: Mapping[str, Any]
) -> int:
    """Convert the models, report, and return the exit status."""
    verbose: bool = options["verbose"]
    settings = replace(settings, details=bool(options["reports"]))
    tasks = _planned(models, settings, options)
    if settings.verify:
        from reducelower.pipeline.verifying import require_runtimes

        require_runtimes(settings)
    check_report_paths(options["reports"], [path for task in tasks for path in (task.source, task.output)])

    def text(outcome: Outcome) -> str:
        if not (outcome.output and not outcome.problems) and not (verbose and outcome.plan is not None):
            return ""
        in_full = (verbose or len(tasks) == 1) and outcome.verdict != "kept"
        return full_text(outcome, verbose=verbose) if in_full else short_text(outcome)

    how = converting(settings)
    # What may crash a process runs in another one, if it can be done again.
    is_apart = len(tasks) > 1 or how["again"] is not None
    with closing(_outcomes(tasks, options, is_apart=is_apart, **how)) as outcomes:
        return tell(command, outcomes, len(tasks), options, text)


def check_all(models: Sequence[str], settings: Settings, options: Mapping[str, Any]) -> int:
    """Check the models, report, and return the exit status."""
    paths = [model.path for model in find_models(models, exclude=options["exclude"])]
    check_report_paths(options["reports"], paths)

    def text(outcome: Outcome) -> str:
        is_shown = options["verbose"] or len(paths) == 1 or outcome.verdict != "fits"
        return full_text(outcome, verbose=options["verbose"]) if is_shown and outcome.plan is not None else ""

    work = partial(check_file, settings=settings)
    with closing(_outcomes(paths, options, is_apart=len(paths) > 1, work=work, crashed=crashed)) as outcomes:
        return tell("check", outcomes, len(paths), options, text)


def _with_output(models: Sequence[str], options: Mapping[str, Any]) -> tuple[Sequence[str], str | None]:
    """The models and the output: if the second of two models does not exist, it is the output of the first."""
    has_output = options["output"] or options["output_dir"] or options["in_place"]
    if has_output or len(models) != 2 or not models[1].endswith(".onnx"):
        return models, options["output"]
    if os.path.lexists(models[1]):
        raise SettingError(f"{models[1]} is there: -o {models[1]} --force replaces it, --output-dir DIR is for both")
    return models[:1], models[1]


def _planned(models: Sequence[str], settings: Settings, options: Mapping[str, Any]) -> Sequence[Task]:
    models, output = _with_output(models, options)
    output_dir: str | None = options["output_dir"]
    return plan_outputs(
        find_models(models, skip=output_dir or "", exclude=options["exclude"]),
        output=output,
        output_dir=output_dir,
        in_place=settings.in_place,
        resume=options["resume"],
        external_data=settings.external_data,
    )


def _outcomes(
    jobs: Sequence[Any], options: Mapping[str, Any], *, is_apart: bool, **how: Any
) -> Generator[Outcome, None, None]:
    """Run each job with the workers of the options, and show progress; `how` has more arguments of `run_all`."""
    with ExitStack() as stack:
        is_short = len(jobs) == 1 and not options.get("verify")
        advance = stack.enter_context(progress("models", len(jobs), quiet=options["quiet"] or is_short))
        all_outcomes = run_all(jobs=jobs, processes=options["jobs"], is_apart=is_apart, **how)
        for done, outcome in enumerate(stack.enter_context(closing(all_outcomes)), 1):
            advance(done, len(jobs))
            if done == len(jobs) == 1:
                stack.close()  # the bar disappears before the outcome is printed
            yield outcome
