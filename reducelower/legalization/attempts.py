"""What is tried to make a model legal, one thing after the other, until there is nothing to refuse.

A model comes as it is; then with functions copied for their calls; without stated types that contradict inference; with
narrow integers held in wider types, or sequences taken apart; without the shapes that it states inside of loops.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING

from onnx import ModelProto

from reducelower.legalization.checking import contradicts_inference
from reducelower.legalization.draft import Draft
from reducelower.legalization.run import folder_of, ground_of, run
from reducelower.model.document import Document
from reducelower.model.graph import HOLDING_GRAPHS, all_nodes, function_path
from reducelower.model.inference import ContradictionError
from reducelower.model.skeleton import without_values
from reducelower.options import Settings, Target
from reducelower.plan import Plan
from reducelower.scope.dead_code import remove_named

if TYPE_CHECKING:
    from reducelower.legalization.mended_source import Mended

__all__ = ["attempt", "attempt_in_place"]

_LOOPS = ("Loop", "Scan")


def attempt(source: Document, target: Target, settings: Settings, *, report: bool) -> tuple[Draft, Plan]:
    """Make a draft of a model legal; where the plan has refusals, the draft is of no use.

    Types that the model states, and that are seen to contradict what its nodes yield, are dropped; sequences are taken
    apart, and integers held in wider types, where the target has none or none so narrow. All of it is noted.

    Raises:
        ContradictionError: dropping them does not help.
        ValueError: the target makes no sense.
    """
    draft, plan = _attempt_as_it_is(source, target, settings, report=report)
    if plan.refusals and (mended := _mended(source.message, plan.target.opset or 0, settings)):
        from reducelower.legalization.mended_source import told_of_source

        made, done = mended
        draft, plan = _attempt_as_it_is(Document.of_message(made), target, settings, report=report)
        return draft, told_of_source(plan, done, source.message, made)
    return draft, plan


def _mended(source: ModelProto, opset: int, settings: Settings) -> tuple[ModelProto, Mended] | None:
    """A copy of a model without what an opset version has not, as far as that is a matter of the whole model."""
    from reducelower.legalization.flat_sequences import hold_as_tensors
    from reducelower.legalization.mended_source import joined
    from reducelower.legalization.sequences import SINCE, may_be_replaced, take_apart
    from reducelower.legalization.unlike_branches import may_be_unlike, run_unlike_branches_in_loops
    from reducelower.legalization.widening import hold_in_wider

    if not opset:
        return None
    if held := hold_in_wider(source, opset, folder_of(settings)):
        return held
    has_sequences, has_branches = may_be_replaced(source, opset), may_be_unlike(source, opset)
    if not has_sequences and not has_branches:
        return None
    made = deepcopy(source)
    done: Mended | None = None
    if has_sequences:
        done = take_apart(made) if opset < SINCE else None
        done = joined(done, hold_as_tensors(made, opset))
    if has_branches:
        done = joined(done, run_unlike_branches_in_loops(made))
    return None if done is None else (made, done)


def _attempt_as_it_is(source: Document, target: Target, settings: Settings, *, report: bool) -> tuple[Draft, Plan]:
    """The same with sequences, and integers as narrow as they are."""
    draft, plan = _without_stale(source, target, settings, report=report)
    if not _contradicts_in_loops(source, draft, plan):
        return draft, plan
    from reducelower.legalization.repair import drop_shapes_in_loops

    open_model = deepcopy(source.message)
    done = tuple(drop_shapes_in_loops(open_model))
    draft, plan = _without_stale(source.with_message(open_model), target, settings, report=report)
    return draft, replace(plan, notes=(*done, *plan.notes))


def _contradicts_in_loops(source: Document, draft: Draft, plan: Plan) -> bool:
    """Whether what is stated inside of loops contradicts what inference finds at the new opset version only."""
    if plan.refusals or plan.source_opset == plan.target.opset or not _may_loop(draft):
        return False
    return contradicts_inference(source.bare, draft.document().message) != ""


def _may_loop(draft: Draft) -> bool:
    """Whether there may be a Loop or Scan anywhere; most models are cleared by the operators of their main graph."""
    census = draft.census
    if census.is_even and HOLDING_GRAPHS.isdisjoint(census.operators):
        return any(node.op_type in _LOOPS for node in all_nodes(draft.model))  # which has its functions alone
    return any(map(draft.may_hold, _LOOPS))


def _without_stale(source: Document, target: Target, settings: Settings, *, report: bool) -> tuple[Draft, Plan]:
    try:
        return _attempt(source, target, settings, report=report)
    except ContradictionError:
        from reducelower.legalization.checking import objection
        from reducelower.legalization.repair import drop_stale, inferred_afresh, mends_more

        found = inferred_afresh(source.message)
        mended = drop_stale(source.message, found)
        # The checker takes one rank for an output of an If and of its branches, though the one it takes has another.
        is_valid = not objection(source.bare)
        if not mended.done and not is_valid and mends_more(source.message, found):
            raise
        # Without anything to drop, what inference objects to is not what is stated; the model is taken as it is.
        stated = source.with_message(mended.model) if mended.done else source
        draft, plan = _attempt(stated, target, settings, report=report, lenient=is_valid or not mended.done)
        return draft, replace(plan, notes=(*mended.done, *plan.notes))


def _attempt(
    source: Document, target: Target, settings: Settings, *, report: bool, lenient: bool = False
) -> tuple[Draft, Plan]:
    draft = Draft.of_document(source)
    plan = run(draft, source, target, settings, report=report, lenient=lenient)
    made, made_of = (draft, plan), source
    depending = _in_functions(plan) if plan.refusals else _changed_without_inputs(source, draft)
    copied: set[str] = set()
    while not depending <= copied:  # copies may in their turn be called in several ways
        from reducelower.legalization.monomorphize import specialize

        copied |= depending
        special = deepcopy(made_of.message)
        ground = ground_of(special, source.with_message(special), plan.target, settings)
        specialize(special, depending, ground)
        made_of = source.with_message(special)
        second = Draft.of_document(made_of)
        again = run(second, made_of, target, settings, report=report, is_last_attempt=True, lenient=lenient)
        if again.refusals and plan.refusals:
            return draft, plan
        made = second, again
        depending = set() if again.refusals else _changed_without_inputs(made_of, second)
    return made


def attempt_in_place(model: ModelProto, target: Target, settings: Settings, *, report: bool) -> Plan:
    """Make a model itself legal, or leave it as it was where the plan has refusals.

    Raises:
        ContradictionError: see `attempt`.
        ValueError: the target makes no sense.
    """
    draft, plan = attempt(Document.of_message(model).for_trials(), target, settings, report=report)
    if not plan.refusals and not _take_over(model, draft.document().message):
        # Weights are held in another type, so what was made without them does not tell what becomes of them.
        draft, plan = attempt(Document.of_message(model), target, settings, report=report)
        model.CopyFrom(draft.document().message)
    return plan


def _take_over(model: ModelProto, made: ModelProto) -> bool:
    """Give a model what was made of a copy of it without weights; False, and nothing, where weights changed as well.

    What was made is of no further use.
    """
    graph = model.graph
    own = {tensor.name: tensor for tensor in graph.initializer}
    kept = {tensor.name: tensor for tensor in made.graph.initializer}
    if any(without_values(own[name]) != kept[name] for name in own.keys() & kept.keys()):
        return False
    remove_named(graph.initializer, own.keys() - kept.keys())
    remove_named(made.graph.initializer, own.keys())
    for held, apart in ((model, "graph"), (graph, "initializer")):
        for field, _ in held.ListFields():
            if field.name != apart:
                held.ClearField(field.name)
    model.MergeFrom(made)
    return True


def _changed_without_inputs(source: Document, draft: Draft) -> set[str]:
    """Graph paths of the model-local functions that were rewritten and that some call hands too few inputs."""
    made = {function_path(function): function.node for function in draft.model.functions}
    bodies = {function_path(function): function.node for function in source.message.functions} if made else {}
    changed = {path for path, nodes in made.items() if bodies.get(path) != nodes}
    if not changed:
        return changed
    from reducelower.legalization.monomorphize import called_without_inputs

    return changed & {function_path(function) for function in called_without_inputs(source.message)}


def _in_functions(plan: Plan) -> set[str]:
    """Graph paths of the model-local functions in which something was refused."""
    return {
        "/".join(refusal.graph.split("/")[:2])
        for refusal in plan.refusals
        if refusal.operator and refusal.graph.startswith("functions/")
    }
