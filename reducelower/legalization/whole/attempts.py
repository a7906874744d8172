"""Attempts to legalize a model, one after the other, until nothing is refused: as it is, then with whole-model changes.

`_CHANGES` lists the changes in order: each is made if the attempts before it were not good enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TypeAlias

from onnx import TensorShapeProto

from reducelower.legalization.checking import new_objection, objects_to_stated
from reducelower.legalization.composed import in_terms_of_source
from reducelower.legalization.run import fits_already, run
from reducelower.legalization.whole import Attempt, Changed
from reducelower.legalization.whole.dead_branches import without_dead_branches
from reducelower.legalization.whole.features import inlined
from reducelower.legalization.whole.narrow_integers import without_narrow_integers
from reducelower.legalization.whole.sequences import without_sequences
from reducelower.legalization.whole.stated_types import drop_shapes_in_loops
from reducelower.model.document import Document
from reducelower.model.functions import functions_refused
from reducelower.model.graph import UNLIKE_BRANCHES_SINCE, graphs
from reducelower.model.value_info import clear_sizes_below_zero
from reducelower.options import Settings, Target

__all__ = ["attempt"]

_LOOPS = ("Loop", "Scan")
_MINUS_ONE = TensorShapeProto.Dimension(dim_value=-1).SerializeToString()
_TAKEN_OUT = "took the sizes of -1 that it states for unknown"


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
        if changed is None or changed.document.message == source.message:
            continue
        again = _attempt(changed.document, target, settings, changes[:count], report=report)
        if not (again.plan.refusals and changed.has_to_help):
            plan = in_terms_of_source(again.plan, source.message, changed.document.message, changed.inner)
            tried = Attempt(source, again.made, replace(plan, notes=(*changed.done, *plan.notes)))
    return tried


# The changes


def _without_dead_branches(tried: Attempt, settings: Settings) -> Changed | None:
    """Replace branches that are never taken by the branch that is, if something is refused, or shapes have to agree."""
    source, _, plan = tried
    agree = (plan.target.opset or plan.source_opset) < UNLIKE_BRANCHES_SINCE <= plan.source_opset
    if "If" not in source.columns.operators or not (agree or plan.refusals):
        return None
    made = without_dead_branches(source.message)
    return None if made is None else Changed(Document(made))


def _without_shapes_in_loops(tried: Attempt, settings: Settings) -> Changed | None:
    """Drop the shapes stated in loops if they contradict inference at the new opset version but not at the old one."""
    source, made, plan = tried
    if plan.refusals or plan.source_opset == plan.target.opset or source.columns.operators.isdisjoint(_LOOPS):
        return None
    if not new_objection(source, made):
        return None
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


_CHANGES: Sequence[_Change] = (
    _without_dead_branches,
    _without_shapes_in_loops,
    _without_sizes_below_zero,
    without_narrow_integers,
    without_sequences,
)

_FOR_REFUSALS = (without_narrow_integers, without_sequences)
"""The changes that are made only if something is refused."""
