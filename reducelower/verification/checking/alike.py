"""Checks like regions once; if they differ, each one again together with the nodes that compute its inputs.

Those nodes may never give the values on which the region differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from onnx import NodeProto

from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.plan import Site
from reducelower.verification.checking.checker import Checker
from reducelower.verification.findings import SiteVerification
from reducelower.verification.regions.claims import Claim
from reducelower.verification.regions.cut import Region, cut_region
from reducelower.verification.regions.pairs import Pair
from reducelower.verification.running.clock import Clock
from reducelower.verification.running.source import CannotRunError

__all__ = ["Judged", "check_group", "grouped", "narrowed", "nodes_of", "not_reached"]

Judged = list[tuple[SiteVerification, list[Region]]]
"""Findings, each with its regions."""


def grouped(claims: Iterable[Claim], clock: Clock) -> tuple[list[list[Region]], Judged]:
    """The regions of claims, in groups that differ only in sizes, and findings for claims that cannot be cut out."""
    groups: dict[object, list[Region]] = {}
    left: dict[tuple[str, str, str], list[Site]] = {}
    for claim in claims:
        clock.check()
        try:
            region = cut_region(claim)
        except CannotRunError as error:
            site = claim.named
            left.setdefault((site.op_type, site.rule, error.reason), []).append(site)
            continue
        groups.setdefault(region.pair.key, []).append(region)
    return list(groups.values()), [
        (SiteVerification(op_type, rule, op_type, nodes_of(sites), "not run", reason), [])
        for (op_type, rule, reason), sites in left.items()
    ]


def check_group(regions: Sequence[Region], checker: Checker, *, in_detail: bool = True) -> Judged:
    """One finding for like regions, or several if they hold only with their own sizes, weights or surroundings.

    Surroundings are tried only `in_detail`.
    """
    by_sizes: dict[object, list[Region]] = {}
    for region in regions:
        by_sizes.setdefault(region.pair.sizes, []).append(region)
    pair, *others = (alike[0].pair for alike in by_sizes.values())
    found = checker.check(pair, others)
    finding = replace(found, nodes=nodes_of(region.pair.site for region in regions))
    if (finding.holds_alone and not (pair.is_reduction and finding.status == "departs")) or not in_detail:
        return [(finding, [*regions])]
    if others:
        return [found for alike in by_sizes.values() for found in check_group(alike, checker)]
    apart = narrowed(regions, finding, checker)
    if any(found.ok for found, _ in apart):
        return apart
    return [(finding, [*regions])]


_RINGS = 3


def nodes_of(sites: Iterable[Site]) -> tuple[tuple[str, str], ...]:
    """Graph path and node name of each site."""
    return tuple((site.graph, site.node) for site in sites)


def narrowed(regions: Sequence[Region], finding: SiteVerification, checker: Checker) -> Judged:
    """The findings for like regions, each together with more and more of the nodes that compute its inputs."""
    known: dict[object, SiteVerification] = {region.pair.identity: finding for region in regions}
    judged: dict[object, tuple[SiteVerification, list[Region]]] = {}
    for region in regions:
        key, found, still_differs = None, finding, False
        for around in _narrower(region):
            at = around.pair.identity
            if at not in known:
                known[at] = checker.check(around.pair)
            if not known[at].holds_alone:
                still_differs = True
                continue
            key, found = at, not_reached(finding, known[at], around.pair)
            # With its own weights it holds. Surroundings may just not have given the values on which it differs.
            if not still_differs or finding.status == "not run":
                found = replace(known[at], rule=finding.rule, op_type=finding.op_type, is_chosen=finding.is_chosen)
                break
        judged.setdefault(key, (found, []))[1].append(region)
    return [
        (replace(found, nodes=nodes_of(region.pair.site for region in members)), members)
        for found, members in judged.values()
    ]


def _narrower(region: Region) -> Iterator[Region]:
    """A region with its own weights, then with ring after ring of the nodes that compute its inputs."""
    try:
        around = cut_region(region.claim, region.opened, fixed=True)
        yield around
        for _ in range(_RINGS):
            if not around.closed:
                return
            around = cut_region(around.claim, around.opened | around.closed, fixed=True)
            yield around
    except CannotRunError:
        return


def not_reached(alone: SiteVerification, found: SiteVerification, around: Pair) -> SiteVerification:
    """The finding for a region that differs by itself, but not on what its surroundings gave it."""
    given = f"not on what {_listed(around.nodes)} gave it in {found.cases} sets of values"
    return replace(alone, status="not run", reason=f"{alone.reason}, but {given}", nodes=alone.nodes[:1])


def _listed(nodes: Sequence[NodeProto]) -> str:
    names = (node.op_type for node in nodes[:-1] if node.domain in DEFAULT_DOMAINS)
    return ", ".join(dict.fromkeys(names)) or "its producers"
