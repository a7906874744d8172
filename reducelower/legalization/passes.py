"""Legalize for a runtime, and legalize the result again until nothing changes.

A fact about a runtime may apply to a node only after the nodes around it were rewritten, because only then its rank or
its constant is known. Nearly always the second pass changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onnx import NodeProto

from reducelower.errors import Refusal
from reducelower.legalization.composed import composed
from reducelower.legalization.whole.attempts import attempt
from reducelower.model.document import Document
from reducelower.model.graph import bodies
from reducelower.options import Settings, Target
from reducelower.plan import Plan, Site

__all__ = ["legalize_until_settled"]

_MOST_PASSES = 3


def legalize_until_settled(
    source: Document, target: Target, settings: Settings, *, report: bool
) -> tuple[Document, Plan]:
    """As `attempt`, and then again on the result, which must not be used if the plan has refusals.

    If a further pass refuses a node, the refusal names the source node that it replaced.

    Raises:
        ContradictionError: see `attempt`.
        ValueError: the target is invalid.
    """
    _, made, plan = attempt(source, target, settings, report=report)
    if plan.refusals:
        return made, plan
    for _ in range(_MOST_PASSES):
        _, result, further = attempt(source.with_message(made.message), plan.target, settings, report=report)
        if further.refusals and not report:
            return legalize_until_settled(source, target, settings, report=True)  # sites say which node it replaced
        if further.refusals:
            places = dict(bodies(made.message))
            refusals = (_of_source(each, plan.sites, places[each.graph].node) for each in further.refusals)
            return made, replace(plan, sites=(), refusals=tuple(dict.fromkeys(refusals)))
        if result.message == made.message:
            break
        both = composed(plan, further, source.message, made.message, result.message)
        plan = _without_mended(both, plan, further)
        made = result
    return made, plan


def _of_source(refusal: Refusal, sites: Sequence[Site], nodes: Sequence[NodeProto]) -> Refusal:
    """A refusal of a replacement, as a refusal of the source node that it replaced."""
    labels = [node.name or f"{node.op_type}#{place}" for place, node in enumerate(nodes)]
    for site in sites:
        if site.graph == refusal.graph and refusal.node in labels[site.first : site.first + site.count]:
            reason = f"it becomes {refusal.operator}, and {refusal.reason}"
            return replace(refusal, node=site.node, operator=site.op_type, reason=reason)
    return refusal


def _without_mended(plan: Plan, first: Plan, second: Plan) -> Plan:
    """The plan without the problems that the first plan left and the second solved."""
    mended = {site.because for site in second.sites if site.because}
    solved = [problem for problem in first.unmended if any(because in problem for because in mended)]
    unmended = [problem for problem in (*first.unmended, *second.unmended) if problem not in solved]
    notes = [note for note in plan.notes if not any(note.startswith(problem) for problem in solved)]
    return replace(plan, notes=tuple(notes), unmended=tuple(dict.fromkeys(unmended)))
