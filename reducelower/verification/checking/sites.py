"""Verifies each region in which two models differ by itself; regions that are the same up to names run once.

A plan names some regions, its sites, beforehand. Aligning the models finds the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from onnx import ModelProto

from reducelower.model.text import counted
from reducelower.plan import CHOSEN, Plan
from reducelower.types import Inference
from reducelower.verification.checking.alike import Judged, check_alike, grouped, nodes_of
from reducelower.verification.checking.checker import Checker
from reducelower.verification.checking.lemmas import settled
from reducelower.verification.findings import SiteVerification
from reducelower.verification.regions.align import align
from reducelower.verification.regions.claims import Alignment
from reducelower.verification.running.inlined import inlined
from reducelower.verification.running.source import OutOfTimeError

__all__ = ["Regions", "losses", "verify_regions"]


@dataclass(frozen=True)
class Regions:
    """The findings for the regions of two models.

    Attributes:
        findings: one per distinct region, in graph order of the first of each.
        alignment: what the models have in common.
        unseen: why some regions were not tried; empty if all were.
    """

    findings: tuple[SiteVerification, ...]
    alignment: Alignment
    unseen: str = ""

    @property
    def hold(self) -> bool:
        """Whether every region ran and agreed."""
        return not self.unseen and all(item.holds_alone for item in self.findings)


def verify_regions(
    before: ModelProto,
    after: ModelProto,
    plan: Plan | None = None,
    *,
    checker: Checker | None = None,
) -> Regions:
    """Run both sides of every region as two small models on the same inputs, per distinct region.

    Two regions are the same if their operators, attributes, constants, element types and ranks are. Both sides of a
    region run on ordinary and edge values, and on values either side of every constant in it (`feeding`). They are
    compared by tolerances; a Reduce operator is compared with its value in exact arithmetic. If they differ in
    onnxruntime, onnx's reference evaluator decides whose fault it is.

    Names of values may mislead. If a region differs that only names tell of, the models are aligned once more without.

    Args:
        before: the source model.
        after: the converted model.
        plan: what the conversion did, if there was one.
        checker: checks each region until its clock is over; `Regions.unseen` says what was not reached.
    """
    before, after = inlined(before), inlined(after)
    checker = checker or Checker()
    aligned = partial(align, before, after, plan, inferences=(Inference(before), Inference(after)))
    first = _judge(aligned(), checker)
    within = f"within the budget of {checker.clock.budget or 0:g} s; raise --verify-budget"
    if first.left:
        regions = f"{first.left:,} of {counted(len(first.alignment.claims), 'differing region')}"
        return _undecided(first, f"{regions} not reached {within}")
    if not first.may_mislead():
        return first.regions
    second = None if checker.clock.over else _judge(aligned(by_name=False), checker)
    if second is None or second.left:
        return _undecided(first, f"whether regions hold where the models are aligned otherwise was not seen {within}")
    return second.regions if all(finding.ok for finding, _ in second.judged) else first.regions


@dataclass
class _Round:
    """The findings for the regions of one alignment.

    Attributes:
        alignment: what the models have in common.
        judged: the findings.
        left: how many regions were not reached in time.
    """

    alignment: Alignment
    judged: Judged
    left: int

    @property
    def regions(self) -> Regions:
        """The findings, without the claims that they belong to."""
        found = (replace(item, nodes=nodes_of(claims)) if claims else item for item, claims in self.judged)
        return Regions(tuple(found), self.alignment)

    def may_mislead(self) -> bool:
        """Whether a claim failed that only names tell of."""
        return any(claim.is_guess for finding, claims in self.judged if not finding.ok for claim in claims)


def _undecided(found: _Round, unseen: str) -> Regions:
    """The findings when there is no time for another alignment.

    That may pair other values, so a region that differs is no difference of the models yet, unless a plan says that its
    values are the same.
    """
    judged = list(found.judged)
    for at, (finding, claims) in enumerate(judged):
        if not finding.ok and claims and all(claim.site is None for claim in claims):
            reason = f"{finding.reason}, if its results are meant to be the same, which was not seen"
            judged[at] = replace(finding, status="not run", reason=reason), claims
    return replace(replace(found, judged=judged).regions, unseen=unseen)


def losses(before: ModelProto, after: ModelProto, plan: Plan) -> tuple[str, ...]:
    """Where the forms that a caller chose lose range, a sentence each; for a conversion that is not verified."""
    chosen = replace(plan, sites=tuple(site for site in plan.sites if site.rule.startswith(CHOSEN)))
    before, after = inlined(before), inlined(after)
    alignment = align(before, after, chosen, inferences=(Inference(before), Inference(after)))
    alignment.claims[:] = [claim for claim in alignment.claims if claim.site is not None]
    found = _judge(alignment, Checker()).regions.findings
    return tuple(finding.loss for finding in found if finding.status == "loses range")


def _judge(alignment: Alignment, checker: Checker) -> _Round:
    """A finding for each distinct region of an alignment, as far as time allows."""
    judged: Judged = []
    for site in alignment.missing:
        reason = "the replacement computes none of its outputs"
        nodes = ((site.graph, site.node),)
        judged.append((SiteVerification(site.op_type, site.rule, site.op_type, nodes, "different", reason), []))
    left = len(alignment.claims)
    try:
        held, rest = settled(alignment.claims, checker)
        judged += held
        left = len(rest)
        groups, uncut = grouped(rest, checker.clock)
        judged += uncut
        left = sum(map(len, groups))
        first = {pair.identity: pair for group in groups for pair in reversed(group)}.values()
        checker.watch({item.name for pair in first if pair.site.graph == "graph" for item in pair.inputs})
        for group in groups:
            judged += check_alike(group, checker)
            left -= len(group)
    except OutOfTimeError:
        return _Round(alignment, judged, left)
    return _Round(alignment, judged, 0)
