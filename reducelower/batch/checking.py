"""Checks one model file: what a conversion would do with it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from reducelower.api import check, legalize
from reducelower.batch.conversion import failed, refused
from reducelower.batch.diagnosis import what_is_wrong
from reducelower.batch.staging import at_hand, renamed
from reducelower.files import LoadedModel, read_model
from reducelower.options import Settings
from reducelower.outcome import Outcome, Verdict
from reducelower.plan import Plan

if TYPE_CHECKING:
    from reducelower.report.details import Details

__all__ = ["check_file"]


def check_file(path: str, settings: Settings) -> Outcome:
    """Check one model, by path or URL; whatever goes wrong is in the outcome, and there never is an output."""
    start = time.monotonic()
    try:
        with at_hand(path) as local:
            found = _check(local, settings)
            found = replace(found, source=path, problems=renamed(found.problems, local, path))
    except Exception as error:
        found = failed(path, error)
    return replace(found, seconds=time.monotonic() - start)


def _check(path: str, settings: Settings) -> Outcome:
    source = None
    try:
        source = read_model(path)
        if wrong := what_is_wrong(source.document, external=source.is_partial):
            return refused(path, wrong)
        plan = check(source.model, **settings.for_engine(), base_dir=source.folder)
        details = _details(source, plan, settings) if settings.details else None
    except Exception as error:
        return failed(path, error, source)
    verdict: Verdict = "refused" if plan.refusals else "legal" if plan.changes_nothing else "rewrite"
    return Outcome(path, verdict, plan=plan, refusals=plan.refusals, details=details)


def _details(source: LoadedModel, plan: Plan, settings: Settings) -> Details:
    """What the converted model would look like: it is made for the report and not kept."""
    from reducelower.report.details import describe_models

    if plan.refusals or not plan.sites:
        return describe_models(source.model, None, plan, plan.refusals, None)
    legalized = legalize(source.model, **settings.for_engine(), base_dir=source.folder)
    return describe_models(source.model, legalized.model, legalized.plan, (), None)
