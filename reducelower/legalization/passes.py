"""Passes over what was written for a runtime, until nothing is left to rewrite.

A fact about a runtime may be true of a node only once others around it were written: its rank is then known, or its
constant. So the result is legalized again. Nearly always nothing changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from onnx import ModelProto, NodeProto

from reducelower.errors import Refusal
from reducelower.legalization.attempts import attempt
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
    draft, plan = attempt(source, target, settings, report=report)
    if plan.refusals:
        return None, plan
    made = draft.document()
    if target.runtime is None:
        return made, plan
    for _ in range(_MOST):
        again, further = attempt(source.with_message(made.message), plan.target, settings, report=report)
        if further.refusals and not report:
            return attempt_until_settled(source, target, settings, report=True)  # the sites tell whose place it is
        if further.refusals:
            places = dict(bodies(made.message))
            refusals = (_of_source(each, plan.sites, places[each.graph].node) for each in further.refusals)
            return None, replace(plan, sites=(), refusals=tuple(dict.fromkeys(refusals)))
        result = again.document()
        if result.message == made.message:
            break
        plan = _joined(plan, further, source.message, made.message, result.message)
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


def _joined(first: Plan, second: Plan, source: ModelProto, between: ModelProto, end: ModelProto) -> Plan:
    """One plan for two passes: the sites of the first with the nodes that stand there after the second, and those of
    the second whose nodes the first did not touch.

    What changed inside of something that the first pass wrote belongs to that site.
    """
    start, middle, last = (dict(bodies(model)) for model in (source, between, end))
    sites: list[Site] = []
    for path in dict.fromkeys(site.graph for site in (*first.sites, *second.sites)):
        own = [site for site in first.sites if site.graph == path]
        if path in start and path in middle and path in last:
            places = _places(last[path].node)
            changes = [site for site in second.sites if site.graph == path]
            touched = {place for site in own for place in range(site.first, site.first + site.count)}
            origins, nodes = _places(start[path].node), middle[path].node
            own = [_moved(site, changes, nodes, places) for site in own]
            own += [
                replace(change, index=origins[name])
                for change in changes
                if change.index not in touched and (name := next(iter(nodes[change.index].output), "")) in origins
            ]
        sites += sorted(own, key=lambda site: site.index)
    mended = {site.because for site in second.sites if site.because}
    gone = [said for said in first.unmended if any(because in said for because in mended)]
    notes = [note for note in first.notes if not any(note.startswith(said) for said in gone)]
    unmended = [said for said in first.unmended if said not in gone]
    return replace(
        first,
        sites=tuple(sites),
        carried=first.carried + len(first.sites) - len(sites),
        ir_version=(first.ir_version[0], second.ir_version[1]),
        notes=tuple(dict.fromkeys((*notes, *second.notes))),
        unmended=tuple(dict.fromkeys((*unmended, *second.unmended))),
        assumes_nonempty=first.assumes_nonempty or second.assumes_nonempty,
        steps=(*first.steps, *second.steps),
    )


def _places(nodes: Sequence[NodeProto]) -> Mapping[str, int]:
    return {name: place for place, node in enumerate(nodes) for name in node.output if name}


def _moved(site: Site, changes: Sequence[Site], nodes: Sequence[NodeProto], places: Mapping[str, int]) -> Site:
    """A site with the positions that its nodes have after the second pass; nodes that stayed are found by name."""
    changed = {change.index: change for change in changes if change.graph == site.graph}
    found: list[int] = []
    for position in range(site.first, site.first + site.count):
        if position in changed:
            change = changed[position]
            found += range(change.first, change.first + change.count)
        else:
            found += [places[name] for name in nodes[position].output if name in places]
    return replace(site, first=min(found), count=max(found) - min(found) + 1) if found else site
