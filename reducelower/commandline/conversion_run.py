"""What `convert` and `expand` have in common: many models, one set of settings, one report."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

from reducelower.commandline import console
from reducelower.commandline.batch import run_all
from reducelower.commandline.conversion import Outcome, convert_file
from reducelower.commandline.failures import FAULT
from reducelower.commandline.inputs import find_models, plan_outputs
from reducelower.commandline.report import full_report, short_report, summary
from reducelower.commandline.settings import Settings, Task
from reducelower.target import Target

__all__ = ["convert_all"]

_FEW = 4


class _Advance(Protocol):
    def __call__(self) -> None: ...


def convert_all(models: Sequence[str], target: Target, options: Mapping[str, Any]) -> int:
    """Convert every model that the command line names, report, and return the exit status.

    Args:
        models: files, folders and patterns.
        target: what is legal where they are going.
        options: the remaining options of the command, by name.
    """
    output, output_dir, in_place = options["output"], options["output_dir"], options["in_place"]
    quiet, verbose = options["quiet"], options["verbose"]
    tasks = plan_outputs(
        find_models(models, skip=output_dir or ""), output=output, output_dir=output_dir, in_place=in_place
    )
    work = partial(convert_file, settings=_settings(target, options))
    outcomes: list[Outcome] = []
    with _progress(len(tasks), quiet) as advance:
        for outcome in run_all(work, tasks, options["jobs"], _crashed):
            outcomes.append(outcome)
            advance()
            for problem in outcome.problems:
                console.problem(problem)
            whole = verbose or len(tasks) == 1
            text = full_report(outcome, verbose=verbose) if whole else short_report(outcome)
            if text and not quiet and (outcome.output or verbose):
                console.result(text)
    if len(tasks) > 1 and not quiet:
        console.result(summary(outcomes))
    return max(outcome.status for outcome in outcomes)


def _settings(target: Target, options: Mapping[str, Any]) -> Settings:
    return Settings(
        target,
        rules=options["rules"],
        ir_version=options["ir_version"],
        freeze_defaults=options["freeze_defaults"],
        element_types=options["element_types"],
        ranks=options["ranks"],
        verify=options["verify"],
        dims=options["dims"],
        inputs=options["inputs"],
        budget=options["budget"],
        strict=options["strict"],
        overwrite=options["force"],
        in_place=options["in_place"],
        external_data=options["external_data"],
    )


def _crashed(task: Task) -> Outcome:
    problem = f"{task.source}: it made the process end without a word; please report this together with the model"
    return Outcome(task.source, FAULT, problems=(problem,))


@contextmanager
def _progress(total: int, quiet: bool) -> Iterator[_Advance]:
    """A progress bar for many models on a terminal; elsewhere nothing, and nothing imported."""
    if quiet or total < _FEW or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, redirect_stdout=True) as progress:
        bar = progress.add_task("models", total=total)
        yield lambda: progress.advance(bar)
