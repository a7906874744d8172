"""What `check` does: a plan per model, and one report about all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from reducelower.commandline import console
from reducelower.commandline.batch import run_all
from reducelower.commandline.check_reports import REPORTS, Checked
from reducelower.commandline.diagnosis import what_is_odd, what_is_wrong
from reducelower.commandline.failures import DONE, FAULT, REFUSED, describe, trace_lines, wants_trace
from reducelower.commandline.inputs import find_models
from reducelower.commandline.settings import Settings
from reducelower.convert import check
from reducelower.files import read_model
from reducelower.target import Target

__all__ = ["check_all"]


def check_all(models: Sequence[str], target: Target, options: Mapping[str, Any]) -> int:
    """Check every model that the command line names, report, and return the exit status."""
    settings = Settings(
        target,
        rules=options["rules"],
        ir_version=options["ir_version"],
        freeze_defaults=options["freeze_defaults"],
        element_types=options["element_types"],
        ranks=options["ranks"],
    )
    paths = [str(model.path) for model in find_models(models)]
    checked = list(run_all(partial(_check_file, settings=settings), paths, options["jobs"], _crashed))
    if options["form"] == "text":
        for problem in (problem for found in checked for problem in found.problems):
            console.problem(problem)
    if not options["quiet"]:
        text = REPORTS[options["form"]](checked, options["verbose"])
        if text:
            console.result(text)
    return max(found.status for found in checked)


def _check_file(path: str, settings: Settings) -> Checked:
    source = None
    try:
        source = read_model(path)
        if wrong := what_is_wrong(source.model, external=bool(source.external)):
            return Checked(path, REFUSED, problems=(f"{path}: {wrong}",))
        plan = check(
            source.model,
            target=settings.target,
            rules=settings.rules,
            ir_version=settings.ir_version,
            freeze_defaults=settings.freeze_defaults,
            element_types=settings.element_types,
            ranks=settings.ranks,
            base_dir=source.folder,
        )
    except Exception as error:
        problems, status = describe(error, path)
        if status == FAULT and source is not None and (odd := what_is_odd(source.model)):
            return Checked(path, REFUSED, problems=(f"{path}: {odd}",))
        if status == FAULT and wants_trace():
            problems += trace_lines()
        return Checked(path, status, problems=problems)
    return Checked(path, DONE if plan.changes_nothing else REFUSED, plan)


def _crashed(path: str) -> Checked:
    problem = f"{path}: it made the process end without a word; please report this together with the model"
    return Checked(path, FAULT, problems=(problem,))
