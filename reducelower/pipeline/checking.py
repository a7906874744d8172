"""Report what a conversion of one local model would do, without writing anything."""

from __future__ import annotations

from dataclasses import replace

from reducelower.api import check
from reducelower.files import read_model
from reducelower.options import Settings
from reducelower.outcome import Outcome, Verdict
from reducelower.pipeline.outcomes import refused
from reducelower.pipeline.soundness import sound

__all__ = ["check_model"]


def check_model(path: str, settings: Settings) -> Outcome:
    """Report what a conversion of a local model would do."""
    source, notes, defect = sound(read_model(path))
    if defect:
        return refused(path, defect)
    plan = check(source.model, **settings.for_engine(), base_dir=source.place)
    plan = replace(plan, notes=(*notes, *plan.notes))
    verdict: Verdict = "refused" if plan.refusals else "fits" if plan.changes_nothing and not notes else "rewrite"
    return Outcome(path, verdict, plan=plan, refusals=plan.refusals)
