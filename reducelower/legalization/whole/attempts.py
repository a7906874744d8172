"""Attempts to legalize a model, one after the other, until nothing is refused: as it is, then with whole-model changes.

`_CHANGES` lists the changes in order: each is made if the attempts before it were not good enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from onnx import ModelProto, TensorShapeProto

from reducelower.legalization.checking import new_objection, objects_to_stated
from reducelower.legalization.run import folder_of, run
from reducelower.legalization.whole import Changed, in_terms_of_source
from reducelower.model.calls import called_without_inputs
from reducelower.model.document import Document
from reducelower.model.graph import function_path, graphs
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


def attempt(
    source: Document, target: Target, settings: Settings, *, report: bool, changes: Sequence[_Change] | None = None
) -> Attempt:
    """Legalize a copy of a model as it is, or else with the changes that apply; the plan's notes name all changes.

    After a change, those before it follow again.

    Raises:
        ValueError: the target is invalid.
    """
    model = source.copy()
    plan = run(model, source, target, settings, report=report)
    tried = Attempt(source, Document.of_message(model), plan)
    changes = _CHANGES if changes is None else changes
    for count, change in enumerate(changes, 1):
        changed = change(tried, settings) if tried.plan.refusals or change not in _FOR_REFUSALS else None
        if changed is None or (changed.refusals and tried.plan.refusals):
            continue
        if changed.refusals:
            tried = tried._replace(plan=replace(tried.plan, refusals=changed.refusals))
        elif changed.document.message != source.message:
            again = attempt(changed.document, target, settings, report=report, changes=changes[:count])
            if not (again.plan.refusals and changed.has_to_help):
                plan = in_terms_of_source(again.plan, source.message, changed.document.message, changed.inner)
                tried = Attempt(source, again.made, replace(plan, notes=(*changed.done, *plan.notes)))
    return tried


# The changes


def _without_dead_branches(tried: Attempt, settings: Settings) -> Changed | None:
    """Replace branches that are never taken by the branch that is, if something in them is refused."""
    refused = {refusal.graph for refusal in tried.plan.refusals if "/" in refusal.graph}
    if not refused:
        return None
    from reducelower.legalization.whole.dead_branches import without_dead_branches

    made = without_dead_branches(tried.source.message, refused, freezes_defaults=settings.freeze_defaults)
    return None if made is None else Changed(Document.of_message(made))


def _with_functions_inlined(tried: Attempt, settings: Settings) -> Changed | None:
    """Inline functions whose conversion depends on the call."""
    source, made, plan = tried
    if not source.message.functions:
        return None
    depending = _in_functions(plan, source) if plan.refusals else _changed_without_inputs(source, made.message)
    if not depending:
        return None
    from reducelower.legalization.whole.features import with_functions_inlined

    return replace(with_functions_inlined(source, depending), has_to_help=bool(plan.refusals))


def _changed_without_inputs(source: Document, model: ModelProto) -> set[str]:
    """Graph paths of rewritten functions that some call gives too few inputs."""
    made = {function_path(function): function.node for function in model.functions}
    bodies = {function_path(function): function.node for function in source.message.functions}
    changed = {path for path, nodes in made.items() if bodies.get(path) != nodes}
    return changed & set(map(function_path, called_without_inputs(source.message))) if changed else set()


def _in_functions(plan: Plan, source: Document) -> set[str]:
    """Graph paths of the functions in which something was refused; names of functions may have slashes."""
    refused = [f"{refusal.graph}/" for refusal in plan.refusals if refusal.operator]
    paths = map(function_path, source.message.functions)
    return {path for path in paths if any(each.startswith(f"{path}/") for each in refused)}


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
    return Changed(Document.of_message(eased), done) if done else None


def _without_sizes_below_zero(tried: Attempt, settings: Settings) -> Changed | None:
    """Take -1 out of stated shapes: exporters write it for an unknown size, which inference may know of a new node."""
    source, made, plan = tried
    data = source.searchable
    if (data is not None and _MINUS_ONE not in data) or plan.changes_nothing:
        return None
    if not plan.refusals and not objects_to_stated(made):
        return None
    eased = deepcopy(source.message)
    if not clear_sizes_below_zero(value for _, graph in graphs(eased) for value in (*graph.output, *graph.value_info)):
        return None
    return Changed(Document.of_message(eased), (_TAKEN_OUT,), has_to_help=True)


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
    _with_functions_inlined,
    _without_shapes_in_loops,
    _without_sizes_below_zero,
    _without_what_is_refused,
)

_FOR_REFUSALS = (_without_dead_branches, _without_what_is_refused)
"""The changes that are made only if something is refused."""
