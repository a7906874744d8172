"""Legalize a model and, if requested, raise primitive forms into the operators that they spell out."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from reducelower.api import legalized, planned
from reducelower.files import LoadedModel
from reducelower.model.document import Document
from reducelower.model.inference.declared import names_in
from reducelower.options import Book, Settings, Target
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
    """A legal model, raised as far as it stays legal; notes name operators that the runtime would get wrong."""
    from reducelower.recompose import known_operators

    operators = set(settings.raised or known_operators(_books(settings))) - target.without
    settings = _of_values_in(document, settings)
    raised, plan = _raised(document, settings, sorted(operators))
    # Without an operator, parts of its form may match others; only operators of the first attempt are reported.
    notes, not_raised = list(plan.notes), dict[str, str]()
    while target.runtime is not None:
        check_plan = planned(raised, replace(_of_values_in(raised, settings), target=target))
        unfit = {site.op_type: f"on {target.runtime}: {site.because}" for site in check_plan.sites}
        unfit |= {refusal.operator: refusal.reason for refusal in check_plan.refusals}
        unfit = {site.op_type: unfit[site.op_type] for site in plan.sites if site.op_type in unfit}
        if not unfit:
            break
        not_raised |= unfit
        raised, plan = _raised(document, settings, sorted(operators - not_raised.keys()))
    notes += [f"{name} was not raised: {why}" for name, why in sorted(not_raised.items())]
    return raised, replace(plan, notes=tuple(notes))


def _of_values_in(document: Document, settings: Settings) -> Settings:
    """The settings, without declarations of values that legalizing or raising removed."""
    names = names_in(document.message) if settings.element_types or settings.ranks else ()
    types = {name: value for name, value in (settings.element_types or {}).items() if name in names}
    ranks = {name: value for name, value in (settings.ranks or {}).items() if name in names}
    return replace(settings, element_types=types, ranks=ranks)


def _books(settings: Settings) -> tuple[Book, ...]:
    from reducelower.recompose import BOOKS

    return tuple(dict.fromkeys((*BOOKS, settings.rules)))


def _raised(document: Document, settings: Settings, operators: Collection[str] | None) -> tuple[Document, Plan]:
    from reducelower.recompose import raise_with_plan

    outcome = raise_with_plan(document.message, settings, ops=operators, rules=_books(settings))
    return Document(outcome.model), outcome.plan
