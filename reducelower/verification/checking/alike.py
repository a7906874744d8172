"""Regions that are alike are checked once; where they do not hold, each with what computes its inputs.

What computes them may give possible values only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from onnx import NodeProto

from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.plan import Site
from reducelower.verification.checking.remembered import Checker
from reducelower.verification.regions.align import Alignment
from reducelower.verification.regions.cut import Region, cut_region
from reducelower.verification.regions.pairs import Pair
from reducelower.verification.result import SiteVerification
from reducelower.verification.running.clock import Clock
from reducelower.verification.running.source import CannotRunError

__all__ = ["Judged", "check_group", "grouped", "holds", "narrowed", "nodes_of", "not_reached"]


@dataclass
class Group:
    """Claims of one signature and one set of declared sizes; a reason in place of the region when it cannot be cut."""

    pair: Pair | str
    regions: list[Region] = field(default_factory=list)
    sites: list[Site] = field(default_factory=list)


Groups = dict[object, dict[object, Group]]


def grouped(alignment: Alignment, clock: Clock, most: int | None) -> Groups | None:
    """The regions of an alignment, those together that are alike; None where they have more than `most` nodes."""
    groups: Groups = {}
    size = 0
    for claim in alignment.claims:
        clock.check()
        try:
            region = cut_region(claim)
        except CannotRunError as error:
            _sort_in(
                groups, claim.site or Site(claim.level.path, claim.pairs[0][0], "region", "", 0, 0, 0), error.reason
            )
            continue
        size += len(region.pair.nodes) + len(region.pair.replacement)
        if most is not None and size > most:
            return None
        _sort_in(groups, region.pair.site, region.pair, region)
    return groups


def _sort_in(groups: Groups, site: Site, pair: Pair | str, region: Region | None = None) -> None:
    """Put a site where those stand that are alike; one that cannot be cut, with those of its reason."""
    key: object = (site.op_type, site.rule, pair) if isinstance(pair, str) else pair.key
    sizes = None if isinstance(pair, str) else pair.sizes
    group = groups.setdefault(key, {}).setdefault(sizes, Group(pair))
    group.sites.append(site)
    if region is not None:
        group.regions.append(region)


def check_group(group: Sequence[Group], checker: Checker, *, in_detail: bool = True) -> Judged:
    """One finding for regions that are alike, unless they hold only for the sizes, weights or surroundings of each.

    Surroundings are looked at in detail alone.
    """
    sites = [site for item in group for site in item.sites]
    regions = [region for item in group for region in item.regions]
    pair = group[0].pair
    if isinstance(pair, str):
        return [
            (SiteVerification(sites[0].op_type, sites[0].rule, sites[0].op_type, nodes_of(sites), "not run", pair), [])
        ]
    others = [item.pair for item in group[1:] if isinstance(item.pair, Pair)]
    finding = replace(checker.check(pair, others), nodes=nodes_of(sites))
    if (holds(finding) and not (pair.is_reduction and finding.status == "departs")) or not in_detail:
        return [(finding, regions)]
    if others:
        return [found for item in group for found in check_group([item], checker)]
    apart = narrowed(regions, finding, checker)
    return apart if any(found.ok for found, _ in apart) else [(finding, regions)]


_RINGS = 3

Judged = list[tuple[SiteVerification, list[Region]]]
"""Findings, each with the regions that it is about."""


def nodes_of(sites: Iterable[Site]) -> tuple[tuple[str, str], ...]:
    """Graph path and node name of each site."""
    return tuple((site.graph, site.node) for site in sites)


def holds(finding: SiteVerification) -> bool:
    """Whether a region ran and agreed."""
    return finding.ok and finding.status != "not run"


def narrowed(regions: Sequence[Region], finding: SiteVerification, checker: Checker) -> Judged:
    """The findings of regions that are alike, with what each is given: it may give possible values only."""
    known: dict[object, SiteVerification] = {region.pair.identity: finding for region in regions}
    judged: dict[object, tuple[SiteVerification, list[Region]]] = {}
    for region in regions:
        key, found, inner = None, finding, None
        for around in _narrower(region):
            at, given = around.pair.identity, inner or around.pair
            if at not in known:
                known[at] = checker.check(around.pair)
            if not holds(known[at]):
                inner = around.pair if inner is None or known[at].status != "not run" else inner
                continue
            if around.pair is given or known[at].varies or finding.status == "not run":
                key, found = at, _in_surroundings(known[at], finding, (region.pair, given), around)
                break
            key, found = at, not_reached(finding, known[at], around.pair)
        judged.setdefault(key, (found, []))[1].append(region)
    return [
        (replace(found, nodes=nodes_of(region.pair.site for region in members)), members)
        for found, members in judged.values()
    ]


def _narrower(region: Region) -> Iterator[Region]:
    """A region with its weights as they are, then with ring after ring of what computes its inputs."""
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


def _in_surroundings(
    found: SiteVerification, alone: SiteVerification, inner: tuple[Pair, Pair], region: Region
) -> SiteVerification:
    """What a region gives that was found with its surroundings, and `alone` without; `inner` is it by itself, and with
    as much of them as it still differs with, and its weights."""
    if region.pair is inner[1] or alone.status == "not run":
        return replace(found, rule=alone.rule, op_type=alone.op_type, is_chosen=alone.is_chosen)
    return not_reached(alone, found, region.pair)


def not_reached(alone: SiteVerification, found: SiteVerification, around: Pair) -> SiteVerification:
    """Say of a region that differs by itself that what it was given in its surroundings did not show it."""
    given = f"not on what {_listed(around.nodes)} gave it in {found.cases} sets of values"
    return replace(alone, status="not run", reason=f"{alone.reason}, but {given}", nodes=alone.nodes[:1])


def _listed(nodes: Sequence[NodeProto]) -> str:
    names = (node.op_type for node in nodes[:-1] if node.domain in DEFAULT_DOMAINS)
    return ", ".join(dict.fromkeys(names)) or "its producers"
