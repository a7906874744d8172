"""Verifies each region in which two models differ by itself; regions that are the same up to names run once.

A plan names some regions, its sites, beforehand. Aligning the models finds the others. If regions that are alike
differ, each is checked again with its own weights, and with what stands around it: these may never give the values on
which it differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from onnx import ModelProto, NodeProto

from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.model.text import counted
from reducelower.plan import Plan
from reducelower.types import Inference
from reducelower.verification.checking.checker import Checker
from reducelower.verification.checking.lemmas import Judged, settled
from reducelower.verification.findings import SiteVerification
from reducelower.verification.regions.align import align
from reducelower.verification.regions.claims import Alignment, Claim
from reducelower.verification.regions.cut import cut
from reducelower.verification.regions.pairs import Pair
from reducelower.verification.running.clock import Clock
from reducelower.verification.running.source import CannotRunError, OutOfTimeError, inlined

__all__ = ["Regions", "nodes_of", "verify_regions"]

_RINGS = 3


@dataclass(frozen=True)
class Regions:
    """The findings for the regions of two models.

    Attributes:
        alignment: what the models have in common.
        judged: each finding, with the claims that it is about.
        left: how many regions were not reached in time.
        unseen: why some regions were not tried; empty if all were.
    """

    alignment: Alignment
    judged: Judged
    left: int = 0
    unseen: str = ""

    @cached_property
    def findings(self) -> tuple[SiteVerification, ...]:
        """One per distinct region, in graph order of the first of each."""
        return tuple(replace(finding, nodes=nodes_of(claims)) for finding, claims in self.judged)

    @property
    def hold(self) -> bool:
        """Whether every region ran and agreed."""
        return not self.unseen and all(finding.holds_alone for finding, _ in self.judged)

    def may_mislead(self) -> bool:
        """Whether a claim failed that only names tell of."""
        return any(claim.is_guess for finding, claims in self.judged if not finding.ok for claim in claims)

    def undecided(self, unseen: str) -> Regions:
        """The same when there is no time for another alignment.

        That may pair other values, so a region that differs is no difference of the models yet, unless a plan says
        that its values are the same.
        """
        judged = list(self.judged)
        for at, (finding, claims) in enumerate(judged):
            if not finding.ok and all(claim.site is None for claim in claims):
                reason = f"{finding.reason}, if its results are meant to be the same, which was not seen"
                judged[at] = replace(finding, status="not run", reason=reason), claims
        return replace(self, judged=judged, unseen=unseen)


def nodes_of(claims: Iterable[Claim]) -> tuple[tuple[str, str], ...]:
    """Graph path and node name of each claim."""
    return tuple((claim.named.graph, claim.named.node) for claim in claims)


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
        return first.undecided(f"{regions} not reached {within}")
    if not first.may_mislead():
        return first
    second = None if checker.clock.over else _judge(aligned(by_name=False), checker)
    if second is None or second.left:
        return first.undecided(f"whether regions hold where the models are aligned otherwise was not seen {within}")
    return second if all(finding.ok for finding, _ in second.judged) else first


def _judge(alignment: Alignment, checker: Checker) -> Regions:
    """A finding for each distinct region of an alignment, as far as time allows."""
    judged: Judged = []
    left = len(alignment.claims)
    try:
        held, rest = settled(alignment.claims, checker)
        judged += held
        left = len(rest)
        groups, uncut = _grouped(rest, checker.clock)
        judged += uncut
        left = sum(map(len, groups))
        first = {pair.identity: pair for group in groups for pair in reversed(group)}.values()
        checker.watch({item.name for pair in first if pair.site.graph == "graph" for item in pair.inputs})
        for group in groups:
            judged += _check_alike(group, checker)
            left -= len(group)
    except OutOfTimeError:
        return Regions(alignment, judged, left)
    return Regions(alignment, judged)


def _grouped(claims: Iterable[Claim], clock: Clock) -> tuple[list[list[Pair]], Judged]:
    """The regions of claims, in groups that differ only in sizes, and findings for claims that cannot be cut out."""
    groups: dict[object, list[Pair]] = {}
    left: dict[tuple[str, str, str], list[Claim]] = {}
    for claim in claims:
        clock.check()
        try:
            pair = cut(claim)
        except CannotRunError as error:
            left.setdefault((claim.named.op_type, claim.named.rule, error.reason), []).append(claim)
            continue
        groups.setdefault(pair.key, []).append(pair)
    return list(groups.values()), [
        (SiteVerification(op_type, rule, (), "not run", reason), members)
        for (op_type, rule, reason), members in left.items()
    ]


def _check_alike(pairs: Sequence[Pair], checker: Checker) -> Judged:
    """One finding for like regions, or several if they hold only with their own sizes, weights or surroundings."""
    by_sizes: dict[object, list[Pair]] = {}
    for pair in pairs:
        by_sizes.setdefault(pair.sizes, []).append(pair)
    first, *others = (alike[0] for alike in by_sizes.values())
    finding = checker.check(first, others)
    if finding.holds_alone and not (first.is_reduction and finding.status == "departs"):
        return [(finding, [pair.claim for pair in pairs])]
    if others:
        return [found for alike in by_sizes.values() for found in _check_alike(alike, checker)]
    judged: dict[object, tuple[SiteVerification, list[Claim]]] = {}
    known: dict[object, SiteVerification] = {first.identity: finding}
    for pair in pairs:
        key, found = _in_place(pair, known, checker)
        judged.setdefault(key, (found, []))[1].append(pair.claim)
    return list(judged.values())


def _in_place(pair: Pair, known: dict[object, SiteVerification], checker: Checker) -> tuple[object, SiteVerification]:
    """The finding for a region with its own weights, or else with the nodes around it too, and what it is a finding of.

    If it holds with neither, it is that of the region alone, which is `known`, as are those of others like it. The
    nodes around a mere guess are not tried, since the models are aligned without it then.
    """
    alone = known[pair.identity]

    def check(around: Pair) -> SiteVerification:
        if around.identity not in known:
            known[around.identity] = checker.check(around)
        return known[around.identity]

    try:
        around = cut(pair.claim, pair.opened, fixed=True)
        has_own_weights = check(around).holds_alone
        if not has_own_weights and not pair.claim.is_guess:
            for _ in range(_RINGS):
                around = cut(pair.claim, around.opened | around.closed, fixed=True)
        found = check(around)
    except CannotRunError:
        return pair.identity, alone
    if not found.holds_alone:
        return pair.identity, alone
    if has_own_weights or alone.status == "not run":
        found = replace(found, rule=alone.rule, op_type=alone.op_type, is_chosen=alone.is_chosen)
    else:  # the nodes around it may just not have given the values on which it differs
        given = f"not on what {_listed(around.nodes)} gave it in {found.cases} sets of values"
        found = replace(alone, status="not run", reason=f"{alone.reason}, but {given}")
    return around.identity, found


def _listed(nodes: Sequence[NodeProto]) -> str:
    names = (node.op_type for node in nodes[:-1] if node.domain in DEFAULT_DOMAINS)
    return ", ".join(dict.fromkeys(names)) or "its producers"
