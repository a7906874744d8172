"""Checks regions that are alike once; if they differ, each one again with what stands around it.

Its own weights, and the nodes that compute its inputs, may never give the values on which it differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from onnx import NodeProto

from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.verification.checking.checker import Checker
from reducelower.verification.findings import SiteVerification
from reducelower.verification.regions.claims import Claim
from reducelower.verification.regions.cut import cut
from reducelower.verification.regions.pairs import Pair
from reducelower.verification.running.clock import Clock
from reducelower.verification.running.source import CannotRunError

__all__ = ["Judged", "check_alike", "grouped", "nodes_of"]

Judged = list[tuple[SiteVerification, list[Claim]]]
"""Findings, each with its claims."""

_RINGS = 3


def nodes_of(claims: Iterable[Claim]) -> tuple[tuple[str, str], ...]:
    """Graph path and node name of each claim."""
    return tuple((claim.named.graph, claim.named.node) for claim in claims)


def grouped(claims: Iterable[Claim], clock: Clock) -> tuple[list[list[Pair]], Judged]:
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
        (SiteVerification(op_type, rule, op_type, (), "not run", reason), members)
        for (op_type, rule, reason), members in left.items()
    ]


def check_alike(pairs: Sequence[Pair], checker: Checker) -> Judged:
    """One finding for like regions, or several if they hold only with their own sizes, weights or surroundings."""
    by_sizes: dict[object, list[Pair]] = {}
    for pair in pairs:
        by_sizes.setdefault(pair.sizes, []).append(pair)
    first, *others = (alike[0] for alike in by_sizes.values())
    finding = checker.check(first, others)
    if finding.holds_alone and not (first.is_reduction and finding.status == "departs"):
        return [(finding, [pair.claim for pair in pairs])]
    if others:
        return [found for alike in by_sizes.values() for found in check_alike(alike, checker)]
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
