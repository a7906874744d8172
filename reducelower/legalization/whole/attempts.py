"""Attempts to legalize a model, one after the other, until nothing is refused: as it is, then with whole-model changes.

`_CHANGES` lists the changes in order: each is made if the attempts before it were not good enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from onnx import TensorShapeProto

from reducelower.legalization.checking import new_objection, objects_to_stated
from reducelower.legalization.run import fits_already, folder_of, run
from reducelower.legalization.whole import Changed, in_terms_of_source
from reducelower.legalization.whole.features import inlined
from reducelower.model.document import Document
from reducelower.model.graph import graphs
from reducelower.model.inlining import functions_refused
from reducelower.model.value_info import clear_sizes_below_zero
from reducelower.options import Settings, Target
from reducelower.plan import Plan

__all__ = ["Attempt", "attempt"]

_LOOPS = ("Loop", "Scan")
_MINUS_ONE = TensorShapeProto.Dimension(dim_value=-1).SerializeToString()
_TAKEN_OUT = "took the sizes of -1 that it states for unknown"


class Attempt(NamedTuple):
    """A model and its legal form, which must not be used if the plan has refusals."""

    source: Document
    made: Document
    plan: Plan


_Change: TypeAlias = Callable[[Attempt, Settings], "Changed | None"]
"""The source of an attempt, changed so that another may do better; None if the change does not apply."""


def attempt(source: Document, target: Target, settings: Settings, *, report: bool) -> Attempt:
    """Legalize a copy of a model as it is, or else with the changes that apply; the plan's notes name all changes.

    Local functions are inlined, unless the model fits already: what their nodes become depends on the calls. The plan
    is in terms of the model without functions.

    Raises:
        ValueError: the target is invalid.
    """
    message = source.message
    if not message.functions or functions_refused(message) or fits_already(source, target, settings):
        return _attempt(source, target, settings, _CHANGES, report=report)
    without = inlined(source)
    tried = _attempt(without.document, target, settings, _CHANGES, report=report)
    plan = replace(tried.plan, notes=(*without.done, *tried.plan.notes))
    return tried._replace(plan=replace(plan, refusals=without.refusals) if without.refusals else plan)


def _attempt(
    source: Document, target: Target, settings: Settings, changes: Sequence[_Change], *, report: bool
) -> Attempt:
    """After a change, those before it follow again."""
    model = source.copy()
    plan = run(model, source, target, settings, report=report)
    tried = Attempt(source, Document(model), plan)
    for count, change in enumerate(changes, 1):
        changed = change(tried, settings) if tried.plan.refusals or change not in _FOR_REFUSALS else None
        if changed is None or (changed.refusals and tried.plan.refusals):
            continue
        if changed.refusals:
            tried = tried._replace(plan=replace(tried.plan, refusals=changed.refusals))
        elif changed.document.message != source.message:
            again = _attempt(changed.document, target, settings, changes[:count], report=report)
            if not (again.plan.refusals and changed.has_to_help):
                plan = in_terms_of_source(again.plan, source.message, changed.document.message, changed.inner)
                tried = Attempt(source, again.made, replace(plan, notes=(*changed.done, *plan.notes)))
    return tried


# The changes


def _without_dead_branches(tried: Attempt, settings: Settings) -> Changed | None:
    """Replace branches that are never taken by the branch that is, if something in them or their If is refused."""
    refusals = tried.plan.refusals
    refused = {refusal.graph for refusal in refusals if "/" in refusal.graph}
    refused |= {f"{refusal.graph}/{refusal.node}" for refusal in refusals if refusal.operator == "If"}
    if not refused:
        return None
    from reducelower.legalization.whole.dead_branches import without_dead_branches

    made = without_dead_branches(tried.source.message, refused, freezes_defaults=settings.freeze_defaults)
    return None if made is None else Changed(Document(made))


def _without_shapes_in_loops(tried: Attempt, settings: Settings) -> Changed | None:
    """Drop the shapes stated in loops if they contradict inference at the new opset version but not at the old one."""
    source, made, plan = tried
    if plan.refusals or plan.source_opset == plan.target.opset or source.columns.operators.isdisjoint(_LOOPS):
        return None
    if not new_objection(source, made):
        return None
    from reducelower.legalization.whole.stated_types import drop_shapes_in_loops

    eased = deepcopy(source.message)
    done = tuple(drop_shapes_in_loops(eased))
    return Changed(Document(eased), done) if done else None


def _without_sizes_below_zero(tried: Attempt, settings: Settings) -> Changed | None:
    """Take -1 out of stated shapes: exporters write it for an unknown size, which inference may know of a new node."""
    source, made, plan = tried
    if _MINUS_ONE not in source.columns.model or plan.changes_nothing:
        return None
    if not plan.refusals and not objects_to_stated(made):
        return None
    eased = deepcopy(source.message)
    if not clear_sizes_below_zero(value for _, graph in graphs(eased) for value in (*graph.output, *graph.value_info)):
        return None
    return Changed(Document(eased), (_TAKEN_OUT,), has_to_help=True)


def _without_what_is_refused(tried: Attempt, settings: Settings) -> Changed | None:
    """Widen narrow integers, replace sequences by tensors, and run branches in Loops, as far as that applies."""
    source, _, plan = tried
    if not plan.target.opset:
        return None
    from reducelower.legalization.whole.narrow_integers import without_narrow_integers
    from reducelower.legalization.whole.sequences import without_sequences
    from reducelower.legalization.whole.unlike_branches import without_unlike_branches

    made = Changed(source)
    for change in (without_narrow_integers, without_sequences, without_unlike_branches):
        if changed := change(made.document, plan.target.opset, folder_of(settings)):
            made = replace(changed, done=(*made.done, *changed.done), inner=made.inner | changed.inner)
    return made if made.done else None


_CHANGES: Sequence[_Change] = (
    _without_dead_branches,
    _without_shapes_in_loops,
    _without_sizes_below_zero,
    _without_what_is_refused,
)

_FOR_REFUSALS = (_without_dead_branches, _without_what_is_refused)
"""The changes that are made only if something is refused."""
