"""Checks one model file: what a conversion would do with it."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reducelower.api import check, legalize
from reducelower.batch.diagnosis import what_is_wrong
from reducelower.failures import DONE, FAULT, REFUSED, describe, trace_lines, wants_trace
from reducelower.files import LoadedModel, read_model
from reducelower.files.urls import is_url
from reducelower.model.validate import what_is_odd
from reducelower.options import Settings
from reducelower.plan import Plan

if TYPE_CHECKING:
    from reducelower.report.details import Details

__all__ = ["Checked", "check_file"]


@dataclass(frozen=True)
class Checked:
    """What a check found out about one model.

    Attributes:
        path: the model as the user named it.
        status: exit status for this model alone.
        plan: what a conversion would do; None when it did not come to that.
        problems: sentences that say why there is no plan.
        details: what a report shows of the model itself; None when none was asked for.
        seconds: how long it took.
    """

    path: str
    status: int
    plan: Plan | None = None
    problems: tuple[str, ...] = ()
    details: Details | None = None
    seconds: float = 0.0


def check_file(path: str, settings: Settings) -> Checked:
    """Check one model, by path or URL; whatever goes wrong is in the result."""
    start = time.monotonic()
    found = _check_wherever(path, settings)
    return replace(found, seconds=time.monotonic() - start)


def _check_wherever(path: str, settings: Settings) -> Checked:
    if not is_url(path):
        return _check_here(path, settings)
    from reducelower.batch.staging import at_hand, renamed

    try:
        with at_hand(path) as local:
            found = _check_here(local, settings)
            return replace(found, path=path, problems=renamed(found.problems, local, path))
    except Exception as error:
        problems, status = describe(error, path)
        return Checked(path, status, problems=problems)


def _check_here(path: str, settings: Settings) -> Checked:
    source = None
    try:
        source = read_model(path)
        if wrong := what_is_wrong(source.document, external=source.is_partial):
            return Checked(path, REFUSED, problems=(f"{path}: {wrong}",))
        plan = check(source.model, **settings.for_engine(), base_dir=source.folder)
        details = _details(source, plan, settings) if settings.details else None
    except Exception as error:
        problems, status = describe(error, path)
        if status == FAULT and source is not None and (odd := what_is_odd(source.model)):
            return Checked(path, REFUSED, problems=(f"{path}: {odd}",))
        if status == FAULT and wants_trace():
            problems += trace_lines()
        return Checked(path, status, problems=problems)
    return Checked(path, DONE if plan.changes_nothing else REFUSED, plan, details=details)


def _details(source: LoadedModel, plan: Plan, settings: Settings) -> Details:
    """What the converted model would look like: it is made for the report and not kept."""
    from reducelower.report.details import describe_models

    if plan.refusals or not plan.sites:
        return describe_models(source.model, None, plan, plan.refusals, None)
    legalized = legalize(source.model, **settings.for_engine(), base_dir=source.folder)
    return describe_models(source.model, legalized.model, legalized.plan, (), None)
