"""Passes over what was written for a runtime, until nothing is left to rewrite.

A fact about a runtime may be true of a node only once others around it were written: its rank is then known, or its
constant. So the result is legalized again. Nearly always nothing changes.
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

__all__ = ["attempt_until_settled"]

_MOST = 3


def attempt_until_settled(
    source: Document, target: Target, settings: Settings, *, report: bool
) -> tuple[Document | None, Plan]:
    """As `attempt`, and for a runtime again on the result; None in place of the result if the plan has refusals.

    What a further pass refuses is refused of the node in whose place it stands.

    Raises:
        ContradictionError: see `attempt`.
        ValueError: the target is invalid.
    """
    made, plan = attempt(source, target, settings, report=report)
    if plan.refusals:
        return None, plan
    if target.runtime is None:
        return made, plan
    for _ in range(_MOST):
        result, further = attempt(source.with_message(made.message), plan.target, settings, report=report)
        if further.refusals and not report:
            return attempt_until_settled(source, target, settings, report=True)  # the sites tell whose place it is
        if further.refusals:
            places = dict(bodies(made.message))
            refusals = (_of_source(each, plan.sites, places[each.graph].node) for each in further.refusals)
            return None, replace(plan, sites=(), refusals=tuple(dict.fromkeys(refusals)))
        if result.message == made.message:
            break
        joined = composed(plan, further, source.message, made.message, result.message)
        plan = _without_mended(joined, plan, further)
        made = result
    return made, plan


def _of_source(refusal: Refusal, sites: Sequence[Site], nodes: Sequence[NodeProto]) -> Refusal:
    """A refusal of a node that was written, as one of the node in whose place it stands."""
    labels = [node.name or f"{node.op_type}#{place}" for place, node in enumerate(nodes)]
    for site in sites:
        if site.graph == refusal.graph and refusal.node in labels[site.first : site.first + site.count]:
            reason = f"it becomes {refusal.operator}, and {refusal.reason}"
            return replace(refusal, node=site.node, operator=site.op_type, reason=reason)
    return refusal


def _without_mended(plan: Plan, first: Plan, second: Plan) -> Plan:
    """The plan without what the first could not mend and the second did."""
    mended = {site.because for site in second.sites if site.because}
    gone = [said for said in first.unmended if any(because in said for because in mended)]
    unmended = [said for said in (*first.unmended, *second.unmended) if said not in gone]
    notes = [note for note in plan.notes if not any(note.startswith(said) for said in gone)]
    return replace(plan, notes=tuple(notes), unmended=tuple(dict.fromkeys(unmended)))
