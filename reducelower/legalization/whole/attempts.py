"""Attempts to legalize a model: as it is, and then with the changes to the whole model that may help."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from reducelower.legalization.composed import in_terms_of_source
from reducelower.legalization.functions import functions_refused
from reducelower.legalization.run import run
from reducelower.legalization.whole import Attempt, Changed
from reducelower.legalization.whole.constants import without_constants
from reducelower.legalization.whole.dead_branches import without_dead_branches
from reducelower.legalization.whole.features import inlined
from reducelower.legalization.whole.narrow_integers import without_narrow_integers
from reducelower.legalization.whole.sequences import MAKERS, without_sequences
from reducelower.legalization.whole.stated_shapes import LOOPS, without_shapes_in_loops, without_sizes_below_zero
from reducelower.model.document import Document
from reducelower.options import Settings, Target

__all__ = ["attempt"]


class _Change(NamedTuple):
    """A change that may help.

    Attributes:
        make: from the last attempt to a changed source; None if that would not help.
        operators: a model without any of these needs no such change; empty if it is about something else.
        is_for_refusals: whether it is made only if something is refused.
    """

    make: Callable[[Attempt, Settings], Changed | None]
    operators: frozenset[str] = frozenset()
    is_for_refusals: bool = False


_CHANGES: Sequence[_Change] = (
    _Change(without_dead_branches, frozenset({"If"})),
    _Change(without_constants, frozenset({"Constant"}), is_for_refusals=True),
    _Change(without_narrow_integers, is_for_refusals=True),
    _Change(without_sequences, MAKERS, is_for_refusals=True),
    _Change(without_shapes_in_loops, LOOPS),  # this and the next look at a result, so they come last
    _Change(without_sizes_below_zero),
)


def attempt(source: Document, target: Target, settings: Settings, *, report: bool) -> Attempt:
    """Legalize a copy of a model as it is, or else with the changes that may help; the plan's notes name all changes.

    Local functions are inlined, since what their nodes become depends on the calls, unless no node has to be changed.
    The plan is in terms of the model without functions.

    Raises:
        ValueError: the target is invalid.
    """
    if not source.message.functions or functions_refused(source.message):
        return _attempt(source, target, settings, report=report)
    without = inlined(source)
    tried = _attempt(without.document, target, settings, report=report)
    plan = tried.plan
    moves = plan.source_opset != plan.target.opset
    if not (plan.refusals or moves) and tried.made.message.graph == without.document.message.graph:
        with_functions = _attempt(source, target, settings, report=report)
        if not with_functions.plan.refusals:  # they may be of a domain of which nothing may remain
            return with_functions
    plan = replace(plan, notes=(*without.done, *plan.notes))
    return tried._replace(plan=replace(plan, refusals=without.refusals) if without.refusals else plan)


def _attempt(source: Document, target: Target, settings: Settings, *, report: bool) -> Attempt:
    tried = _run(source, target, settings, report=report)
    done: list[str] = []
    inner: set[str] = set()
    operators = source.columns.operators
    for change in _CHANGES:
        if change.operators and operators.isdisjoint(change.operators):
            continue
        if change.is_for_refusals and not tried.plan.refusals:
            continue
        if changed := change.make(tried, settings):
            tried = _run(changed.document, target, settings, report=report)
            done += changed.done
            inner |= changed.inner
    if tried.source is source:
        return tried
    plan = in_terms_of_source(tried.plan, source.message, tried.source.message, inner)
    return Attempt(source, tried.made, replace(plan, notes=(*done, *plan.notes)))


def _run(source: Document, target: Target, settings: Settings, *, report: bool) -> Attempt:
    model = source.copy()
    plan = run(model, source, target, settings, report=report)
    return Attempt(source, Document(model), plan)
