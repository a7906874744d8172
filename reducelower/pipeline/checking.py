"""Say what a conversion of one local model would do; nothing is written."""

from __future__ import annotations

from dataclasses import replace

from reducelower.api import check, legalize
from reducelower.files import LoadedModel, read_model
from reducelower.legalization.whole.features import fitted
from reducelower.model.document import Document
from reducelower.options import Settings
from reducelower.outcome import Outcome, Verdict
from reducelower.pipeline.conversion import failed, refused, with_details
from reducelower.pipeline.named import for_model
from reducelower.pipeline.soundness import sound
from reducelower.plan import Plan

__all__ = ["check_here"]


def check_here(path: str, settings: Settings) -> Outcome:
    """Say what a conversion of a local model would do; errors are in the outcome."""
    source = None
    try:
        source = read_model(path)
        settings = for_model(settings, source.document)
        source, notes, wrong = sound(source)
        if wrong:
            return refused(path, wrong)
        plan = check(source.model, **settings.for_engine(), base_dir=source.place)
        plan = replace(plan, notes=(*notes, *plan.notes))
        verdict: Verdict = "refused" if plan.refusals else "fits" if plan.changes_nothing and not notes else "rewrite"
        outcome = Outcome(path, verdict, plan=plan, refusals=plan.refusals)
        return _with_planned_details(outcome, plan, settings, source)
    except Exception as error:
        return failed(path, error, source)


def _with_planned_details(outcome: Outcome, plan: Plan, settings: Settings, source: LoadedModel) -> Outcome:
    """Add the parts of a report on a check; the converted model is made for that and then dropped."""
    if not settings.details or plan.refusals or not plan.sites:
        return outcome
    # The sites are in the model as it is fitted to the runtime.
    source = replace(source, document=fitted(source.document, settings.target.runtime, settings).document)
    legal = legalize(source.model, **{**settings.for_engine(), "set_sizes": {}}, base_dir=source.place)
    of_sites = with_details(replace(outcome, plan=legal.plan), settings, source, Document.of_message(legal.model))
    return replace(outcome, details=of_sites.details)
