"""Verifies each region in which two models differ by itself; regions that are the same up to names run once.

A plan names some regions, its sites, beforehand. Aligning the models finds the others.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from onnx import ModelProto

from reducelower.model.text import counted
from reducelower.plan import CHOSEN, Plan
from reducelower.types import Inference
from reducelower.verification.checking.alike import Judged, check_group, grouped
from reducelower.verification.checking.checker import Checker
from reducelower.verification.checking.lemmas import settled
from reducelower.verification.findings import SiteVerification
from reducelower.verification.regions.align import align
from reducelower.verification.regions.claims import Alignment, Claim
from reducelower.verification.regions.cut import Region
from reducelower.verification.result import Coverage
from reducelower.verification.running.clock import Clock
from reducelower.verification.running.inlined import inlined
from reducelower.verification.running.source import OutOfTimeError

__all__ = ["Regions", "losses", "verify_regions"]

_ROUNDS = 4
_IN_DETAIL = 8  # differing regions that are examined in detail, if there is no plan


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

    @property
    def coverage(self) -> Coverage:
        """How much was seen."""
        ran = [item for item in self.findings if item.status != "not run"]
        nodes, cases = sum(len(item.nodes) for item in ran), sum(item.cases for item in ran)
        return Coverage(len(ran), nodes, self.alignment.shared, cases)


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

    Args:
        before: the source model.
        after: the converted model.
        plan: what the conversion did, if there was one.
        checker: checks each region until its clock is over; `Regions.unseen` says what was not reached.
    """
    before, after = inlined(before), inlined(after)
    inferences = Inference(before), Inference(after)
    checker = checker or Checker()
    first: _Round | None = None
    dropped: dict[Hashable, Claim] = {}
    for _ in range(_ROUNDS):
        if first is not None and checker.clock.over:
            return _undecided(first, _no_time_to_align(checker.clock))
        alignment = align(before, after, plan, dropped=dropped, inferences=inferences)
        found = _judge(alignment, plan, checker)
        first = first or found
        if found.left:
            told = _no_time_for(found, checker.clock) if found is first else _no_time_to_align(checker.clock)
            return _undecided(first, told)
        if all(finding.ok for finding, _ in found.judged):
            return found.regions
        failing = found.failing()
        if not failing.keys() - dropped.keys():
            break
        dropped |= failing
    assert first is not None
    return first.regions


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
    left: int = 0

    @property
    def regions(self) -> Regions:
        """The findings, without the regions that they belong to."""
        return Regions(tuple(finding for finding, _ in self.judged), self.alignment)

    def failing(self) -> dict[Hashable, Claim]:
        """The claims that failed and can be dropped, by their keys."""
        regions = (region for finding, regions in self.judged if not finding.ok for region in regions)
        claims = (region.claim for region in regions)
        return {key: claim for claim in claims if claim.site is None and not claim.is_output for key in claim.keys}


def _undecided(first: _Round, unseen: str) -> Regions:
    """The findings of the first alignment, when there is no time for another.

    Another alignment may pair other values, so a region that differs is no difference of the models yet, unless a plan
    says that its values are the same.
    """
    withdrawn = [
        (_if_meant(finding) if not finding.ok and _are_guesses(regions) else finding, regions)
        for finding, regions in first.judged
    ]
    return replace(replace(first, judged=withdrawn).regions, unseen=unseen)


def _are_guesses(regions: Sequence[Region]) -> bool:
    return bool(regions) and all(region.claim.site is None for region in regions)


def _if_meant(finding: SiteVerification) -> SiteVerification:
    reason = f"{finding.reason}, if its results are meant to be the same, which was not seen"
    return replace(finding, status="not run", reason=reason)


def _no_time_for(found: _Round, clock: Clock) -> str:
    regions = f"{found.left:,} of {counted(len(found.alignment.claims), 'differing region')}"
    return f"{regions} not reached within the budget of {clock.budget:g} s; raise --verify-budget"


def _no_time_to_align(clock: Clock) -> str:
    return (
        f"the budget of {clock.budget:g} s ended before it was seen whether regions hold where the models are aligned "
        "otherwise; raise --verify-budget"
    )


def losses(before: ModelProto, after: ModelProto, plan: Plan) -> tuple[str, ...]:
    """Where the forms that a caller chose lose range, a sentence each; for a conversion that is not verified."""
    chosen = replace(plan, sites=tuple(site for site in plan.sites if site.rule.startswith(CHOSEN)))
    before, after = inlined(before), inlined(after)
    inferences = Inference(before), Inference(after)
    alignment = align(before, after, chosen, dropped=(), inferences=inferences)
    alignment.claims[:] = [claim for claim in alignment.claims if claim.site is not None]
    found = _judge(alignment, chosen, Checker())
    return tuple(finding.loss for finding, _ in found.judged if finding.status == "loses range")


def _judge(
    alignment: Alignment,
    plan: Plan | None,
    checker: Checker,
) -> _Round:
    """A finding for each distinct region of an alignment, as far as time allows."""
    judged: Judged = []
    for site in alignment.missing:
        reason = "the replacement computes none of its outputs"
        nodes = ((site.graph, site.node),)
        judged.append((SiteVerification(site.op_type, site.rule, site.op_type, nodes, "different", reason), []))
    left = len(alignment.claims)
    try:
        findings, rest = settled(alignment.claims, checker)
        judged += [(finding, []) for finding in findings]
        left = len(rest)
        groups, uncut = grouped(rest, checker.clock)
        judged += uncut
        left = sum(map(len, groups))
        first = {region.pair.identity: region.pair for group in groups for region in reversed(group)}.values()
        checker.watch({item.name for pair in first if pair.site.graph == "graph" for item in pair.inputs})
        for group in groups:
            in_detail = plan is not None or sum(not finding.ok for finding, _ in judged) < _IN_DETAIL
            judged += check_group(group, checker, in_detail=in_detail)
            left -= len(group)
    except OutOfTimeError:
        return _Round(alignment, judged, left)
    return _Round(alignment, judged)
