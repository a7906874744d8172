"""What `check` does: a plan per model, and one report about all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from reducelower.batch.checking import check_file
from reducelower.batch.inputs import find_models
from reducelower.batch.many import check_crashed
from reducelower.batch.running import run_all
from reducelower.cli import console
from reducelower.cli.check_reports import answer
from reducelower.cli.progress import progress
from reducelower.cli.reporting import check_report_paths, of_check, write_reports
from reducelower.cli.workers import workers
from reducelower.options import Settings, Target

__all__ = ["check_all"]


def check_all(models: Sequence[str], target: Target, options: Mapping[str, Any]) -> int:
    """Check every model that the command line names, report, and return the exit status."""
    reports = options["reports"]
    settings = Settings(
        target,
        rules=options["rules"],
        ir_version=options["ir_version"],
        freeze_defaults=options["freeze_defaults"],
        element_types=options["element_types"],
        ranks=options["ranks"],
        details=bool(reports),
    )
    scheduler: str | None = options["scheduler"]
    if scheduler:
        from reducelower.batch.cluster import anchored, anchored_settings

        models, settings = anchored(models), anchored_settings(settings)
    paths = [model.path for model in find_models(models)]
    check_report_paths(reports, paths)
    checked = []
    work, jobs = partial(check_file, settings=settings), options["jobs"]
    with workers(scheduler, jobs) as executor, progress("models", len(paths), quiet=options["quiet"]) as advance:
        for found in run_all(work, paths, jobs, check_crashed, executor=executor):
            checked.append(found)
            advance(len(checked), len(paths))
    if options["form"] == "text":
        for problem in (problem for found in checked for problem in found.problems):
            console.problem(problem)
    facts = [of_check(found) for found in checked]
    if not options["quiet"]:
        text = answer(options["form"], facts, verbose=options["verbose"])
        if text:
            console.result(text)
    write_reports("check", facts, reports)
    return max(found.status for found in checked)
