"""What a conversion makes of a model: legal, and what it spells out raised into operators where that is asked for."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from reducelower.api import check, legalized
from reducelower.files import LoadedModel
from reducelower.model.document import Document
from reducelower.options import Book, Settings, Target
from reducelower.pipeline.named import for_model
from reducelower.plan import Plan

__all__ = ["legalized_and_raised"]


def legalized_and_raised(source: LoadedModel, settings: Settings) -> tuple[Document, Plan]:
    """The model after conversion, raising, or both."""
    settings = replace(settings, base_dir=source.place)
    if settings.raised is None:
        return legalized(source.document, settings, report=True)
    if settings.target == Target():
        return _raised(source.document, settings, settings.raised or None)
    from reducelower.legalization.composed import composed

    converted, first = legalized(source.document, settings, report=True)
    raised, second = _raised_for(converted, settings, replace(settings.target, opset=first.target.opset))
    return raised, composed(first, second, source.document.message, converted.message, raised.message)


def _raised_for(document: Document, settings: Settings, target: Target) -> tuple[Document, Plan]:
    """A legal model, raised where it stays legal; a note names what the runtime would get wrong."""
    from reducelower.recompose import known_operators

    wanted = set(settings.raised or known_operators(_books(settings))) - target.without
    # Rewriting removes values of which something was declared.
    settings = replace(settings, optional=settings.optional | {"element_types", "ranks"})
    settings = for_model(settings, document)
    raised, plan = _raised(document, settings, sorted(wanted))
    # Parts of a form that is not raised may look like other operators, which are not reported.
    notes, wrong = list(plan.notes), dict[str, str]()
    while target.runtime is not None:
        asked = {**for_model(settings, raised).for_engine(), "target": target}
        again = check(raised.message, **asked, base_dir=settings.base_dir)
        found = {site.op_type: f"on {target.runtime}: {site.because}" for site in again.sites}
        found |= {refusal.operator: refusal.reason for refusal in again.refusals}
        found = {site.op_type: found[site.op_type] for site in plan.sites if site.op_type in found}
        if not found:
            break
        wrong |= found
        raised, plan = _raised(document, settings, sorted(wanted - wrong.keys()))
    notes += [f"{name} was not raised: {why}" for name, why in sorted(wrong.items())]
    return raised, replace(plan, notes=tuple(notes))


def _books(settings: Settings) -> tuple[Book, ...]:
    from reducelower.recompose import BOOKS

    return tuple(dict.fromkeys((*BOOKS, settings.rules)))


def _raised(document: Document, settings: Settings, operators: Collection[str] | None) -> tuple[Document, Plan]:
    from reducelower.recompose import raise_with_plan

    made = raise_with_plan(document.message, settings, ops=operators, rules=_books(settings))
    return Document.of_message(made.model), made.plan
