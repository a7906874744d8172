"""Attempts to legalize a model, one after the other, until nothing is refused.

First the model as it is, then with functions copied in place of their calls, without stated types that contradict
inference, with narrow integers widened or sequences replaced by tensors, and without the shapes stated inside of loops.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

from onnx import TensorShapeProto

from reducelower.legalization.checking import new_objection, objects_to_stated
from reducelower.legalization.draft import Draft
from reducelower.legalization.mended_source import in_terms_of_source
from reducelower.legalization.run import folder_of, run
from reducelower.model.calls import called_without_inputs
from reducelower.model.document import Agreed, Document
from reducelower.model.graph import HOLDING_GRAPHS, all_nodes, function_path
from reducelower.model.value_info import clear_sizes_below_zero
from reducelower.options import Settings, Target
from reducelower.plan import Plan
from reducelower.types import ContradictionError

__all__ = ["attempt"]

_LOOPS = ("Loop", "Scan")
_MINUS_ONE = TensorShapeProto.Dimension(dim_value=-1).SerializeToString()
_TAKEN_OUT = "took the sizes of -1 that it states for unknown"


def attempt(source: Document, target: Target, settings: Settings, *, report: bool) -> tuple[Draft, Plan]:
    """Legalize a draft of a model; if the plan has refusals, the draft must not be used.

    Stated types that are found to contradict inference are dropped. Where something is refused, the model is changed as
    a whole: sequences are replaced by tensors, integers widened, branches run in Loops. The plan notes all of it.

    Raises:
        ContradictionError: dropping types does not help.
        ValueError: the target is invalid.
    """
    draft, plan = _attempt_as_it_is(source, target, settings, report=report)
    if not plan.refusals or not plan.target.opset:
        return draft, plan
    from reducelower.legalization.sequences import without_sequences
    from reducelower.legalization.unlike_branches import without_unlike_branches
    from reducelower.legalization.widening import without_narrow_integers

    made, said, inner = source, list[str](), set[str]()
    for change in (without_narrow_integers, without_sequences, without_unlike_branches):
        if mended := change(made, plan.target.opset, folder_of(settings)):
            made = Document.of_message(mended.model)
            said.append(mended.said)
            inner |= mended.inner
    if not said:
        return draft, plan
    draft, plan = _attempt_as_it_is(made, target, settings, report=report)
    plan = in_terms_of_source(plan, source.message, made.message, inner)
    return draft, replace(plan, notes=(*said, *plan.notes))


def _attempt_as_it_is(source: Document, target: Target, settings: Settings, *, report: bool) -> tuple[Draft, Plan]:
    """As `attempt`, but with sequences and narrow integers left in place."""
    draft, plan = _as_stated(source, target, settings, report=report)
    if not _states_minus_one(source) or plan.changes_nothing:
        return draft, plan
    if not plan.refusals and not objects_to_stated(draft.document()):
        return draft, plan
    # Exporters write -1 for an unknown size, which contradicts the number that inference may know of a new node.
    open_model = deepcopy(source.message)
    if not clear_sizes_below_zero(open_model):
        return draft, plan
    again, second = _as_stated(source.with_message(open_model), target, settings, report=report)
    if second.refusals:
        return draft, plan
    return again, replace(second, notes=(_TAKEN_OUT, *second.notes))


def _states_minus_one(source: Document) -> bool:
    """Whether the model may state a size of -1; searched in bytes, so True can be wrong."""
    data = source.searchable
    return data is None or _MINUS_ONE in data


def _as_stated(source: Document, target: Target, settings: Settings, *, report: bool) -> tuple[Draft, Plan]:
    draft, plan = _without_stale(source, target, settings, report=report)
    if not _contradicts_in_loops(source, draft, plan):
        return draft, plan
    from reducelower.legalization.stated_types import drop_shapes_in_loops

    open_model = deepcopy(source.message)
    done = tuple(drop_shapes_in_loops(open_model))
    draft, plan = _without_stale(source.with_message(open_model), target, settings, report=report)
    return draft, replace(plan, notes=(*done, *plan.notes))


def _contradicts_in_loops(source: Document, draft: Draft, plan: Plan) -> bool:
    """Whether types stated inside of loops contradict inference at the new opset version but not at the old one."""
    if plan.refusals or plan.source_opset == plan.target.opset or not _may_loop(draft):
        return False
    return new_objection(source, draft.document()) != ""


def _may_loop(draft: Draft) -> bool:
    """Whether the model may have a Loop or Scan; for most models the operators of the main graph rule it out."""
    census = draft.nodes.census
    if census.is_even and HOLDING_GRAPHS.isdisjoint(census.operators):
        return any(node.op_type in _LOOPS for node in all_nodes(draft.model))  # only functions are left in draft.model
    return any(map(draft.may_hold, _LOOPS))


def _without_stale(source: Document, target: Target, settings: Settings, *, report: bool) -> tuple[Draft, Plan]:
    agreed = source.agreed
    if agreed is None:
        try:
            return _attempt(source, target, settings, report=report)
        except ContradictionError:
            from reducelower.legalization.repair import mends_more
            from reducelower.legalization.stated_types import drop_stale, inferred_afresh

            found = inferred_afresh(source.message)
            mended = drop_stale(source.message, found)
            # The checker wants one rank for the output of an If and both branches, even if the branch taken has
            # another.
            is_valid = not source.objection
            if not mended.done and not is_valid and mends_more(source.message, found):
                raise
            # If there is nothing to drop, inference does not object to stated types; keep the model as it is.
            stated = source.with_message(mended.model) if mended.done else source
            agreed = Agreed(stated, tuple(mended.done), is_valid or not mended.done)
            source.note_agreed(agreed)
    draft, plan = _attempt(agreed.document, target, settings, report=report, lenient=agreed.is_lenient)
    return draft, replace(plan, notes=(*agreed.done, *plan.notes))


def _attempt(
    source: Document, target: Target, settings: Settings, *, report: bool, lenient: bool = False
) -> tuple[Draft, Plan]:
    draft = Draft.of_document(source)
    plan = run(draft, source, target, settings, report=report, lenient=lenient)
    depending = _in_functions(plan, source) if plan.refusals else _changed_without_inputs(source, draft)
    if not depending:
        return draft, plan
    from reducelower.legalization.whole_models import with_functions_inlined

    inlined = with_functions_inlined(source, depending)
    if inlined.refusals:
        return draft, plan if plan.refusals else replace(plan, refusals=inlined.refusals)
    again, second = _attempt(inlined.document, target, settings, report=report, lenient=lenient)
    if second.refusals and plan.refusals:
        return draft, plan
    second = in_terms_of_source(second, source.message, inlined.document.message)
    return again, replace(second, notes=(*inlined.done, *second.notes))


def _changed_without_inputs(source: Document, draft: Draft) -> set[str]:
    """Graph paths of rewritten functions that some call gives too few inputs."""
    made = {function_path(function): function.node for function in draft.model.functions}
    bodies = {function_path(function): function.node for function in source.message.functions} if made else {}
    changed = {path for path, nodes in made.items() if bodies.get(path) != nodes}
    return changed & set(map(function_path, called_without_inputs(source.message))) if changed else set()


def _in_functions(plan: Plan, source: Document) -> set[str]:
    """Graph paths of the functions in which something was refused; names of functions may have slashes."""
    refused = [f"{refusal.graph}/" for refusal in plan.refusals if refusal.operator]
    paths = set(map(function_path, source.message.functions)) if refused else set()
    return {path for path in paths if any(each.startswith(f"{path}/") for each in refused)}
