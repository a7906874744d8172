"""Conversions and checks of many models: one set of settings, one report."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias

from reducelower.batch.inputs import find_models, plan_outputs
from reducelower.batch.many import check_file, converting, crashed, run_all, workers
from reducelower.cli.progress import progress, steps
from reducelower.cli.telling import check_report_paths, tell
from reducelower.cli.text import full_text, short_text
from reducelower.failures import SettingError
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
    tasks, settings = _planned(models, replace(settings, details=bool(options["reports"])), options)
    if settings.verify and not options["scheduler"]:  # a cluster has its own packages
        from reducelower.pipeline.verifying import require_runtimes

        require_runtimes(settings)
    check_report_paths(options["reports"], [path for task in tasks for path in (task.source, task.output)])

    def text(outcome: Outcome) -> str:
        if not (outcome.output and not outcome.problems) and not (verbose and outcome.plan is not None):
            return ""
        in_full = (verbose or len(tasks) == 1) and not outcome.kept
        return full_text(outcome, verbose=verbose) if in_full else short_text(outcome)

    with closing(_outcomes(tasks, settings, options)) as outcomes:
        return tell(command, outcomes, len(tasks), options, text)


def check_all(models: Sequence[str], settings: Settings, options: Mapping[str, Any]) -> int:
    """Check the models, report, and return the exit status."""
    if options["scheduler"]:
        from reducelower.batch.cluster import anchored

        models, settings = anchored(models, settings)
    paths = [model.path for model in find_models(models, exclude=options["exclude"])]
    check_report_paths(options["reports"], paths)

    def text(outcome: Outcome) -> str:
        is_shown = options["verbose"] or len(paths) == 1 or outcome.verdict != "fits"
        return full_text(outcome, verbose=options["verbose"]) if is_shown and outcome.plan is not None else ""

    work = partial(check_file, settings=settings)
    with closing(_outcomes_of_many(paths, options, work=work, crashed=crashed)) as outcomes:
        return tell("check", outcomes, len(paths), options, text)


def _with_output(models: Sequence[str], options: Mapping[str, Any]) -> tuple[Sequence[str], str | None]:
    """The models and the output: if the second of two models does not exist, it is the output of the first."""
    has_output = options["output"] or options["output_dir"] or options["in_place"]
    if has_output or len(models) != 2 or not models[1].endswith(".onnx"):
        return models, options["output"]
    if os.path.lexists(models[1]):
        raise SettingError(f"{models[1]} is there: -o {models[1]} --force replaces it, --output-dir DIR is for both")
    return models[:1], models[1]


def _planned(models: Sequence[str], settings: Settings, options: Mapping[str, Any]) -> tuple[Sequence[Task], Settings]:
    """The tasks and settings, with paths that the workers can use."""
    models, output = _with_output(models, options)
    output_dir: str | None = options["output_dir"]
    scheduler: str | None = options["scheduler"]
    if scheduler:
        from reducelower.batch.cluster import absolute, anchored

        models, settings = anchored(models, settings)
        output_dir = output_dir and absolute(output_dir)
    tasks = plan_outputs(
        find_models(models, skip=output_dir or "", exclude=options["exclude"]),
        output=output,
        output_dir=output_dir,
        in_place=settings.in_place,
        # A lost worker may have written its output; a record shows the next worker that it is ours.
        resume=options["resume"] or bool(scheduler),
        external_data=settings.external_data,
    )
    return tasks, settings


def _outcomes(tasks: Sequence[Task], settings: Settings, options: Mapping[str, Any]) -> Generator[Outcome, None, None]:
    """The outcome of each model, with a progress bar for many, or the steps of a single one."""
    how = converting(settings)
    if len(tasks) == 1 and not options["scheduler"]:
        is_apart = how["again"] is not None  # a crash can be survived
        with steps(quiet=options["quiet"]) as on_step:
            outcomes = list(run_all(jobs=tasks, processes=1, is_apart=is_apart, on_step=on_step, **how))
        yield from outcomes  # after the steps have disappeared from the terminal
    else:
        yield from _outcomes_of_many(tasks, options, **how)


def _outcomes_of_many(jobs: Sequence[Any], options: Mapping[str, Any], **how: Any) -> Generator[Outcome, None, None]:
    """Run each job with the workers of the options and a progress bar; `how` has more arguments of `run_all`.

    Even a single worker is a separate process, since libraries may crash.
    """
    scheduler, processes, quiet = options["scheduler"], options["jobs"], options["quiet"]
    with workers(scheduler, processes) as executor, progress("models", len(jobs), quiet=quiet) as advance:
        how |= {"jobs": jobs, "processes": processes, "executor": executor, "is_apart": len(jobs) > 1}
        with closing(run_all(**how)) as outcomes:
            for done, outcome in enumerate(outcomes, 1):
                advance(done, len(jobs))
                yield outcome
